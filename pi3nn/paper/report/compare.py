"""Two reports side by side: the same paper, run on two machines or at two times.

Compared is what both have: the shards that only one of them has are named and left out of both, so
that every number is made of as many runs here as there. Numbers on processors of two kinds need not
be the same; a verdict may become another one only where its number was nearer to a border of it than
the two of them moved (`pi3nn.paper.verdicts.Ours.borders`).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pi3nn import atomic
from pi3nn.errors import UserError, counted
from pi3nn.paper import exports
from pi3nn.paper.report import cells, claims, source
from pi3nn.paper.tasks import PROTOCOLS
from pi3nn.paper.verdicts import Judged
from pi3nn.results import tables

SAME = 1e-6  # 7 significant digits are kept: what differs by less is the same number


@dataclass(frozen=True)
class Comparison:
    """One protocol of two reports, which are called ``first`` and ``second``.

    Attributes
    ----------
    processors : pair of dict
        How many of the shards of both were made on which kind, in each report.
    only : pair of list
        Shards that the other one has not.
    shards : DataFrame
        A row for each shard of both: ``members`` of both, how many of them are the ``same`` in all
        numbers, by how much the PICP of a member ``moved`` at most, the ``farthest`` move of any
        number as a share of it, and both processors.
    cells : DataFrame
        A row for each printed number that both have. ``moved`` is second minus first, ``allowed``
        what may be chance, ``share`` the one in units of the other. Where the verdict is another one:
        ``border`` that was crossed, how far the first was from it (``from_border``) and how much that
        changed (``border_moved``).
    claims : DataFrame
        The paper's claims whose answers differ.
    """

    protocol: str
    processors: tuple[dict[str, int], dict[str, int]]
    only: tuple[list[str], list[str]]
    shards: pd.DataFrame
    cells: pd.DataFrame
    claims: pd.DataFrame

    @property
    def moved(self) -> pd.DataFrame:
        """The cells whose number moved, the farthest first."""
        found = self.cells[self.cells["moved"].abs() > SAME]
        return found.sort_values("share", ascending=False, kind="stable")

    @property
    def changed(self) -> pd.DataFrame:
        """The cells whose verdict is another one."""
        return self.cells[self.cells["verdict_first"] != self.cells["verdict_second"]]

    @property
    def unexplained(self) -> pd.DataFrame:
        """Changed verdicts whose number was not nearer to the border than it moved, or the border."""
        changed = self.changed
        return changed[~(changed["from_border"].abs() <= changed["border_moved"])]


def compared(first: Path, second: Path, protocols: Sequence[str] = PROTOCOLS) -> list[Comparison]:
    """Every protocol of which both folders have the records of a shard.

    Raises
    ------
    UserError
        Where there is none, or the two were run with different budgets.
    """
    found = []
    for protocol in protocols:
        names = [_names(folder, protocol) for folder in (first, second)]
        if common := [name for name in names[0] if name in names[1]]:
            _check_budgets(first, second, protocol)
            only = tuple([n for n in mine if n not in common] for mine in names)
            found.append(_protocol(first, second, protocol, common, (only[0], only[1])))
    if not found:
        raise UserError(
            f"{first} and {second} have no shard of {' or '.join(protocols)} in common: give a "
            "folder that scripts/reproduce_paper wrote, such as results/paper"
        )
    return found


def _names(folder: Path, protocol: str) -> list[str]:
    return [task.name for task in exports.exported(folder, protocol)]


def _check_budgets(first: Path, second: Path, protocol: str) -> None:
    budgets = [exports.provenance(folder, protocol).get("budget") for folder in (first, second)]
    if budgets[0] != budgets[1]:
        raise UserError(
            f"{first} is of the {budgets[0]} budget, {second} of the {budgets[1]} one: their numbers "
            "are not of the same runs"
        )


def _protocol(
    first: Path, second: Path, protocol: str, common: list[str], only: tuple[list[str], list[str]]
) -> Comparison:
    sources = [source.read(folder, protocol, common) for folder in (first, second)]
    made_on = [_processors(folder, protocol, common) for folder in (first, second)]
    shards = [
        _shard(first, second, protocol, name) | {"first": a, "second": b}
        for name, a, b in zip(common, *made_on, strict=True)
    ]
    judged = zip(*map(cells.judged, sources), strict=True)
    rows = [_cell(a, b) for a, b in judged if a.printed and None not in (a.ours, b.ours)]
    answers = zip(*map(claims.checked, sources), strict=True)
    changed = [(a.text, a.answer, b.answer) for a, b in answers if a.answer != b.answer]
    processors = [dict(Counter(names)) for names in made_on]
    return Comparison(
        protocol,
        (processors[0], processors[1]),
        only,
        pd.DataFrame(shards),
        pd.DataFrame(rows, columns=list(_CELL)),
        pd.DataFrame(changed, columns=["the paper's claim", "first", "second"]),
    )


def _processors(folder: Path, protocol: str, names: list[str]) -> list[str]:
    shards = exports.provenance(folder, protocol).get("shards", {})
    return [str(shards.get(name, {}).get("cpu", "unknown")) for name in names]


# --- shards --------------------------------------------------------------------------------------

_RECORD = ["key", "set", "gamma"]


def _shard(first: Path, second: Path, protocol: str, name: str) -> dict[str, Any]:
    """What became of the members that a shard has in both, which are told by their key."""
    a, b = (
        exports.read(exports.records_folder(folder, protocol) / f"{name}.csv.gz").set_index(_RECORD)
        for folder in (first, second)
    )
    both = a.index.intersection(b.index)
    numbers = [c for c in a.select_dtypes("number") if c in b and c != "seconds"]
    a, b = a.loc[both], b.loc[both]
    equal = ((a[numbers] == b[numbers]) | (a[numbers].isna() & b[numbers].isna())).all(axis=1)
    members, moved = equal.groupby(level="key").all(), (a[numbers] - b[numbers]).abs()
    size = a[numbers].abs().where(a[numbers].abs() > b[numbers].abs(), b[numbers].abs())
    return {
        "shard": name,
        "members": len(members),
        "same": int(members.sum()),
        "moved": moved["picp"].max(),
        "farthest": (moved / size.where(size > 0, 1.0)).max().max(),
    }


# --- cells ---------------------------------------------------------------------------------------

_PLACE = ("protocol", "table", "method", "column", "statistic", "printed")
_NUMBERS = ("first", "second", "moved", "allowed", "share")
_VERDICTS = ("verdict_first", "verdict_second", "border", "from_border", "border_moved")
_CELL = (*_PLACE, *_NUMBERS, *_VERDICTS)


def _cell(a: Judged, b: Judged) -> dict[str, Any]:
    assert a.ours is not None
    assert b.ours is not None
    moved = b.ours - a.ours
    row = {name: getattr(a, name) for name in _PLACE}
    row |= {"first": a.ours, "second": b.ours, "moved": moved, "allowed": a.allowed}
    # Where nothing scatters, any move is beyond chance.
    row["share"] = abs(moved) / a.allowed if a.allowed else (float("inf") if moved else 0.0)
    row |= {"verdict_first": a.verdict, "verdict_second": b.verdict}
    crossed = _crossed(a, b) if a.verdict != b.verdict else ("", None, None)
    return row | dict(zip(("border", "from_border", "border_moved"), crossed, strict=True))


def _crossed(a: Judged, b: Judged) -> tuple[str, float | None, float | None]:
    """The border between two verdicts: its name, how far the first was from it, how far it moved."""
    there = dict(b.borders)
    for name, distance in a.borders:
        if name in there and (distance < 0) != (there[name] < 0):
            return name, distance, abs(there[name] - distance)
    return "", None, None


# --- written -----------------------------------------------------------------------------------


def write(comparisons: Sequence[Comparison], text: str, path: Path) -> None:
    """Every cell as CSV, or, under any other ending, the text."""
    try:
        if path.suffix == ".csv":
            tables.write(pd.concat([comparison.cells for comparison in comparisons]), path)
        else:
            atomic.write_text(path, text)
    except OSError as error:
        raise UserError(f"can't write {path}: {error.strerror}") from error


def in_words(comparisons: Sequence[Comparison], first: Path, second: Path) -> str:
    """All of it as Markdown that reads well on a screen."""
    lines = ["# Two reports side by side", "", f"- first: {first}", f"- second: {second}"]
    for comparison in comparisons:
        lines += ["", f"## Protocol {comparison.protocol}", ""]
        lines += _lines(comparison)
    return "\n".join(lines) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    sides = ("first", "second")
    for side, processors in zip(sides, comparison.processors, strict=True):
        kinds = [f"{counted(n, 'shard')} on {name}" for name, n in processors.items()]
        yield f"- {side}: {', '.join(kinds)}"
    for side, names in zip(sides, comparison.only, strict=True):
        if names:
            yield f"- only in the {side}: {_shortened(names)}"
    yield from _section("Shards", _sentence_on_shards(comparison), _shown_shards(comparison))
    yield from _section("Printed numbers", _sentence_on_cells(comparison), _shown_cells(comparison))
    yield from _section("Changed verdicts", _rule(comparison), _shown_changes(comparison))
    answers = counted(len(comparison.claims), "claim") + " of the paper got another answer."
    yield from _section("Claims", answers, comparison.claims)


def _section(title: str, sentence: str, table: pd.DataFrame) -> Iterator[str]:
    yield from ("", f"### {title}", "", sentence)
    if len(table):
        yield from ("", *tables.markdown(table))


def _shortened(names: list[str]) -> str:
    shown = ", ".join(itertools.islice(names, 5))
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _sentence_on_shards(comparison: Comparison) -> str:
    shards = comparison.shards
    members, same = int(shards["members"].sum()), int(shards["same"].sum())
    whole, apart = int(_whole(shards).sum()), int((shards["members"] == 0).sum())
    others = (
        f" {counted(apart, 'shard')} without a member in common: another engine, or other settings."
    )
    return (
        f"Of {counted(members, 'member')} in {counted(len(shards), 'shard')} that both have, {same} "
        f"are the same in every number: {counted(whole, 'shard')} as a whole.{others if apart else ''}"
    )


def _whole(shards: pd.DataFrame) -> pd.Series:
    """Whether a shard has members in both, which are all the same."""
    return (shards["members"] == shards["same"]) & (shards["members"] > 0)


def _shown_shards(comparison: Comparison) -> pd.DataFrame:
    shards = comparison.shards
    table = shards[~_whole(shards)]
    formats = {"moved": "{:.4f}", "farthest": "{:.0e}"}
    return table.assign(**{name: table[name].map(text.format) for name, text in formats.items()})


def _sentence_on_cells(comparison: Comparison) -> str:
    moved, total = comparison.moved, len(comparison.cells)
    text = f"Of {total} printed numbers that both were judged by, {total - len(moved)} are the same"
    if moved.empty:
        return f"{text}."
    most = moved.iloc[0]
    return (
        f"{text}; {len(moved)} moved, by {moved['share'].median():.2f} (median) to "
        f"{most['share']:.2f} (the {most['statistic']} of {most['method']} on {most['column']}) of "
        "what may be chance: the tolerance of the verdict, of a confidence half the span of our runs."
    )


def _shown_cells(comparison: Comparison) -> pd.DataFrame:
    table = comparison.moved[["table", "method", "column", "statistic", "printed", *_NUMBERS]]
    formats = dict.fromkeys(("first", "second"), "{:.4f}") | {"moved": "{:+.4f}"}
    formats |= {"allowed": "{:.4f}", "share": "{:.2f}"}
    return table.assign(**{name: table[name].map(text.format) for name, text in formats.items()})


def _rule(comparison: Comparison) -> str:
    changed, strange = len(comparison.changed), len(comparison.unexplained)
    if not changed:
        return "None."
    if strange:
        return f"{changed}, {strange} of them not nearer to a border than number and border moved."
    return f"{changed}, all of them nearer to a border than number and border moved."


def _shown_changes(comparison: Comparison) -> pd.DataFrame:
    columns = ["table", "method", "column", "statistic", *_VERDICTS]
    table = comparison.changed[columns]
    numbers = ("from_border", "border_moved")
    return table.assign(**{name: table[name].map("{:.5f}".format) for name in numbers})
