"""``report.html``: one page that stands alone, for a reader with ten minutes."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from pi3nn import paths
from pi3nn.paper import verdicts
from pi3nn.paper.ood.ood_tables import Section
from pi3nn.paper.report import prose, render
from pi3nn.paper.report.claims import RULE, Claim
from pi3nn.paper.report.grids import QUICK, Grid
from pi3nn.paper.report.source import Source
from pi3nn.paper.verdicts import Judged
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

    @property
    def protocol(self) -> str:
        return self.source.protocol

    @property
    def in_two_sentences(self) -> str:
        """The summary."""
        count = {name: int(self.counts[name].iloc[-1]) for name in verdicts.ALL}
        printed = sum(count.values())
        answers = Counter(claim.answer.partition(",")[0] for claim in self.claims)
        run = printed - count[verdicts.NOT_RUN]
        return (
            f"Of {printed} printed numbers {run} were run again: {count[verdicts.EQUAL]} are equal as "
            f"printed, {count[verdicts.WITHIN]} within sampling error, {count[verdicts.TAIL]} in the tail "
            f"of our runs' scatter, which is too wide to tell for {count[verdicts.WIDE]}; "
            f"{count[verdicts.DIFFERS]} differ, {count[verdicts.CANNOT]} can't be reproduced. Of {len(self.claims)} claims {answers['yes']} "
            f"hold, {answers['partly']} hold partly, {answers['no']} do not, {answers['not run']} were "
            "not run."
        )

    @property
    def sections(self) -> list[Section]:
        """The other tables of the experiments out of distribution."""
        return [section for report in self.source.ood.values() for section in report.sections]

    @property
    def runs(self) -> dict[str, Any]:
        """What was run, when, where and for how long."""
        return _runs_behind(self.source.provenance)


def document(folder: Path, chapters: Sequence[Chapter]) -> str:
    """The page as HTML; figures are those written below `folder`."""
    return pages.rendered(
        Path(__file__).with_name("templates") / "report.html",
        title="PI3NN, cell by cell",
        style=Markup(Path(__file__).with_name("page.css").read_text(encoding="utf-8")),
        chapters=chapters,
        pictures={c.protocol: _pictures(folder, c.protocol) for c in chapters},
        discrepancies=_discrepancies(),
        quick=QUICK,
        rules=(RULE, *verdicts.RULES),
        verdicts=verdicts.ALL,
        looks=render.LOOKS,
        details=render.details,
    )


def _pictures(folder: Path, protocol: str) -> dict[str, str]:
    """By name, the figures there are."""
    figures = (folder / "figures" / protocol).glob("*.png")
    return {path.stem: pages.source(_small(path)) for path in figures}


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


def _discrepancies() -> dict[str, str]:
    title, _, text = (paths.docs() / "discrepancies.md").read_text(encoding="utf-8").partition("\n")
    return {"title": title.removeprefix("# "), "body": Markup(prose.to_html(text, shift=1))}


def _runs_behind(provenance: Mapping[str, Any]) -> dict[str, Any]:
    tasks: Mapping[str, Mapping[str, Any]] = provenance.get("shards", {})
    members, failed, seconds = (
        sum(facts.get(key, 0) for facts in tasks.values())
        for key in ("members", "failed", "seconds")
    )
    machines = {
        "; ".join(f"{key} {_shown(facts[key])}" for key in _MACHINE if key in facts)
        for facts in tasks.values()
    }
    rows = [
        {"shard": name} | {key: _shown(facts.get(key, "")) for key in _FACTS}
        for name, facts in tasks.items()
    ]
    sentence = (
        f"{len(tasks)} shards, {members} members, {failed} of them failed; {seconds / 3600:.1f} hours "
        f"of training, counted as one core. Budget: {provenance.get('budget', 'unknown')}."
    )
    machines.discard("")
    return {"sentence": sentence, "machines": sorted(machines), "table": pd.DataFrame(rows)}


_FACTS = ("members", "failed", "seconds", "date", "commits", "note")
_MACHINE = ("cpu", "cores", "python", "versions")


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return f"{value:.0f}" if isinstance(value, float) else str(value)
