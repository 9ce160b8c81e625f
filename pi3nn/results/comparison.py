"""A run's statistics beside numbers that are printed elsewhere.

Who printed them, and what a verdict means, is known to whoever hands over a `Compare`; tables of a
run only show what it answers.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pi3nn.results.tables import Entry

COLUMNS = 100  # of a screen


@dataclass(frozen=True)
class Printed:
    """A printed number; ``verdict`` and ``reason`` may be empty."""

    text: str
    verdict: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Comparison:
    """Printed numbers by statistic; none if nothing is printed of such a run.

    ``source`` says who printed them, ``rule`` what verdicts mean. With ``changed``, the keys in which
    a run differs from the one that was printed, there are no verdicts.
    """

    source: str = ""
    cells: Mapping[str, Printed] = field(default_factory=dict)
    rule: str = ""
    changed: Sequence[str] = ()


Compare = Callable[[Entry, Sequence[str]], Comparison]
"""From what a method did on a data set, and the dotted keys that differ from the experiment's own."""


def nothing(entry: Entry, changed: Sequence[str]) -> Comparison:
    """For a run of which nothing is printed anywhere."""
    return Comparison()


def no_verdicts(changed: Sequence[str]) -> str:
    """Why there are none."""
    verb = "differs" if len(changed) == 1 else "differ"
    return f"No verdicts: {', '.join(changed)} {verb} from the experiment's own settings."


def reasons(cells: Iterable[tuple[str, Printed]]) -> list[str]:
    """A sentence for each verdict with a reason; cells, given with their names, share one."""
    names: dict[tuple[str, str], list[str]] = {}
    for name, cell in cells:
        if cell.reason:
            names.setdefault((cell.verdict, cell.reason), []).append(name)
    return [f"{', '.join(who)} {verdict}: {why}." for (verdict, why), who in names.items()]


def listed(sentences: Iterable[str]) -> list[str]:
    """The lines of a Markdown list that fits a screen."""
    return [
        line
        for sentence in sentences
        for line in textwrap.wrap(
            sentence, COLUMNS, initial_indent="- ", subsequent_indent="  ", break_long_words=False
        )
    ]
