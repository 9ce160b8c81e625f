"""``report.html``: one page that stands alone, for a reader with ten minutes."""

from __future__ import annotations

import html
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pi3nn import paths
from pi3nn.paper import verdicts
from pi3nn.paper.report import prose, render
from pi3nn.paper.report.claims import RULE, Claim
from pi3nn.paper.report.grids import QUICK, Grid
from pi3nn.paper.report.source import Source
from pi3nn.paper.verdicts import RULES, Judged
from pi3nn.results import pages


@dataclass(frozen=True)
class Chapter:
    """All that is told of one protocol; ``counts`` has a row per table, then that of all together,
    and a column per verdict."""

    source: Source
    cells: list[Judged]
    grids: list[Grid]
    counts: pd.DataFrame
    claims: list[Claim]


CAPTIONS = {
    "robustness": "Coverage of every setting, split by split. The paper's claim of robustness is that "
    "PI3NN's dots stay near the line. A dot in the blue band can't be told from 0.95 by its test rows; "
    "the black line is the mean of Table 1.",
    "coverage_width": "The same dots by their width: widths can be compared at equal height only.",
    "cubic1d": "Figure 1 of the paper: the steps of PI3NN on the 1D cubic function, and its intervals "
    "beyond the training rows with and without the OOD initialisation.",
    "cubic1d_heavy": "The same with heavy-tailed noise (the paper's limitation 3).",
    "cubic10d": "Figure 2 of the paper: densities of the width on training and OOD rows, 10D function.",
    "cubic10d_shift": "Confidence on rows that are shifted step by step, 10D function.",
    "flight": "Table 3 as a picture: confidence by rank, ours and the printed numbers.",
    "streamflow": "Figure 4 of the paper: flow, prediction and interval.",
    "camels": "The same for another basin, whose data come with this project.",
}
_PROTOCOLS = {
    "paper": "what the text of the paper says; where it is silent, the released value",
    "released": "what the runs behind the printed numbers did, as far as the authors' files tell",
}
_METHODS = (
    "PI3NN trains three networks by least squares, for the mean and for the mean distances above and "
    "below it, and scales the two distances so that exactly the right number of training rows lies "
    "outside. Its OOD initialisation starts the distances ten times too large. QD learns both bounds from "
    "a loss that trades width for coverage; PIVEN adds a point prediction to it. SQR learns quantiles; DER "
    "learns a distribution of normal distributions. All share one training engine and the same splits. "
    "Formulas and failures: docs/methods/."
)


def document(folder: Path, parts: Sequence[Chapter]) -> str:
    """The page as HTML; figures are those written below `folder`."""
    body = "\n".join(
        [
            "<h1>PI3NN, cell by cell</h1>",
            "<p>Every number that the paper prints, beside ours, with a verdict; and what of its claims "
            "holds in our runs. Made from exported records by <code>pi3nn-report paper</code>.</p>",
            *(_quick(part) for part in parts if part.source.quick),
            _contents(parts),
            *(_summary(part) for part in parts),
            _rules(),
            *(_results(folder, part) for part in parts),
            f'<h2 id="methods">The methods in short</h2><p>{html.escape(_METHODS)}</p>',
            _discrepancies(),
            *(_provenance(part) for part in parts),
        ]
    )
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return pages.document("PI3NN, cell by cell", style, body)


def _quick(part: Chapter) -> str:
    return f'<p class="quick">Protocol {part.source.protocol}: {html.escape(QUICK)}</p>'


def _contents(parts: Sequence[Chapter]) -> str:
    places = [(f"summary-{p.source.protocol}", f"Summary, {p.source.protocol}") for p in parts]
    places += [(f"results-{p.source.protocol}", f"Tables, {p.source.protocol}") for p in parts]
    places += [("methods", "Methods"), ("discrepancies", "Discrepancies")]
    places += [(f"provenance-{p.source.protocol}", f"Runs, {p.source.protocol}") for p in parts]
    links = " ".join(f'<a href="#{place}">{name}</a>' for place, name in places)
    return f"<nav>{links}</nav>"


# --- summary -------------------------------------------------------------------------------------


def _summary(part: Chapter) -> str:
    protocol = part.source.protocol
    return (
        f'<h2 id="summary-{protocol}">Summary, protocol {protocol}</h2>'
        f'<p class="note">Protocol {protocol}: {_PROTOCOLS[protocol]}.</p><p>{_lead(part)}</p>'
        f"{_claims(part.claims)}{_counts(part.counts)}"
    )


def _lead(part: Chapter) -> str:
    """The summary in two sentences."""
    count = {name: int(part.counts[name].iloc[-1]) for name in verdicts.ALL}
    printed = sum(count.values())
    answers = Counter(claim.answer.partition(",")[0] for claim in part.claims)
    run = printed - count[verdicts.NOT_RUN]
    return (
        f"Of {printed} printed numbers {run} were run again: {count[verdicts.EQUAL]} are equal as printed, "
        f"{count[verdicts.WITHIN]} within sampling error, {count[verdicts.DIFFERS]} differ, "
        f"{count[verdicts.CANNOT]} can't be reproduced. Of {len(part.claims)} claims {answers['yes']} hold, "
        f"{answers['partly']} hold partly, {answers['no']} do not, {answers['not run']} were not run."
    )


def _claims(claims: Sequence[Claim]) -> str:
    rows = "".join(
        f'<tr><td class="claim">{html.escape(c.text)}<br><span class="note">{html.escape(c.place)}</span></td>'
        f'<td class="answer {c.answer.partition(",")[0].replace(" ", "")}">{c.answer}</td>'
        f"<td>{html.escape(c.numbers)}</td></tr>"
        for c in claims
    )
    return (
        '<div class="wide"><table class="plain claims"><caption>What the paper claims</caption><thead><tr>'
        "<th>claim</th><th>holds</th><th>in our runs</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _counts(counts: pd.DataFrame) -> str:
    head = "".join(
        f'<th><span class="key {render.CLASSES[name]}">{html.escape(name)}</span></th>'
        for name in verdicts.ALL
    )
    rows = "".join(
        f"<tr><td>{html.escape(str(row['table']))}</td>"
        + "".join(f'<td class="number">{row[name]}</td>' for name in verdicts.ALL)
        + "</tr>"
        for _, row in counts.iterrows()
    )
    return (
        '<div class="wide"><table class="plain"><caption>Printed cells by verdict</caption>'
        f"<thead><tr><th>table</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _rules() -> str:
    items = "".join(f"<li>{html.escape(rule)}</li>" for rule in (RULE, *RULES))
    return f"<details><summary>The rules behind claims and verdicts</summary><ul>{items}</ul></details>"


# --- tables and figures --------------------------------------------------------------------------


def _results(folder: Path, part: Chapter) -> str:
    protocol = part.source.protocol
    keys = "".join(
        f'<span class="key {render.CLASSES[name]}">{html.escape(name)}</span>'
        for name in verdicts.ALL
    )
    return "\n".join(
        [
            f'<h2 id="results-{protocol}">Tables and figures, protocol {protocol}</h2>',
            f'<p class="note">Ours above, printed below. {keys}<span class="key best">best</span> Hover '
            "over a cell for its tolerance, its runs and the reason of a difference.</p>",
            *(_grid(grid) for grid in part.grids),
            *_figures(folder / "figures" / protocol, protocol),
            *_more(part),
        ]
    )


def _grid(grid: Grid) -> str:
    notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in grid.notes)
    return render.to_html(grid) + notes


def _figures(folder: Path, protocol: str) -> Iterator[str]:
    for name, caption in CAPTIONS.items():
        path = folder / f"{name}.png"
        if path.is_file():
            yield pages.picture(_small(path), f"{caption} Protocol {protocol}.")


def _small(path: Path) -> bytes:
    """A picture with 128 colours: a third of its size."""
    from PIL import Image  # comes with matplotlib

    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(
            128, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
        )
    content = io.BytesIO()
    small.save(content, format="png")
    return content.getvalue()


def _more(part: Chapter) -> Iterator[str]:
    """The other tables of the experiments out of distribution."""
    for report in part.source.ood.values():
        for section in report.sections:
            title = f"{section.title}, protocol {part.source.protocol}"
            notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in section.notes)
            yield (
                f"<details><summary>In detail: {html.escape(title)}</summary>"
                f"{_plain(section.table)}{notes}</details>"
            )


def _plain(table: pd.DataFrame) -> str:
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in table)
    rows = "".join(
        f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row)}</tr>"
        for row in table.to_numpy()
    )
    return (
        '<div class="wide"><table class="plain"><thead><tr>'
        f"{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


# --- discrepancies and provenance ----------------------------------------------------------------


def _discrepancies() -> str:
    text = (paths.docs() / "discrepancies.md").read_text(encoding="utf-8")
    body = prose.to_html(text.partition("\n")[2], shift=1)
    title = prose.to_html(text.partition("\n")[0], shift=1).removeprefix("<h2>")
    return f'<h2 id="discrepancies">{title}\n{body}'


def _provenance(part: Chapter) -> str:
    """Which shards were run, when, where and for how long."""
    protocol, shards = part.source.protocol, part.source.provenance.get("shards", {})
    rows = [
        {"shard": name} | {key: _shown(facts.get(key, "")) for key in _FACTS}
        for name, facts in shards.items()
    ]
    members = sum(facts.get("members", 0) for facts in shards.values())
    failed = sum(facts.get("failed", 0) for facts in shards.values())
    hours = sum(facts.get("seconds", 0) for facts in shards.values()) / 3600
    told = (
        f"{len(shards)} shards, {members} members, {failed} of them failed; {hours:.1f} hours of training, "
        f"counted as one core. Budget: {part.source.provenance.get('budget', 'unknown')}."
    )
    machines = {
        "; ".join(f"{key} {_shown(facts[key])}" for key in _MACHINE if key in facts)
        for facts in shards.values()
    }
    lines = "".join(f'<p class="note">{html.escape(line)}</p>' for line in sorted(machines) if line)
    return (
        f'<h2 id="provenance-{protocol}">The runs, protocol {protocol}</h2><p>{html.escape(told)}</p>{lines}'
        f"<details><summary>Shard by shard</summary>{_plain(pd.DataFrame(rows))}</details>"
    )


_FACTS = ("members", "failed", "seconds", "date", "commits", "note")
_MACHINE = ("cpu", "cores", "python", "versions")


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return f"{value:.0f}" if isinstance(value, float) else str(value)
