"""A run's statistics beside numbers that are printed elsewhere.

Who printed them, and what a verdict means, is known to whoever hands over a `Compare`; tables of a
run only show what it answers.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pi3nn.results.tables import Entry

COLUMNS = 100  # of a screen


@dataclass(frozen=True)
class Printed:
    """A printed number; the verdict on ours, and what there is to say of it, may be empty."""

    text: str
    verdict: str = ""
    explanation: str = ""


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


def no_verdicts(changed: Mapping[str, Sequence[str]]) -> list[str]:
    """Why some runs have none: sentences, from the changed keys of every run by its name.

    Only runs of which something is printed belong here; of the others there is nothing to judge.
    """
    runs: dict[tuple[str, ...], list[str]] = {}
    for name, keys in changed.items():
        if keys:
            runs.setdefault(tuple(keys), []).append(name)
    sentences = []
    for keys, names in runs.items():
        of = "" if len(names) == len(changed) else f" for {', '.join(names)}"
        verb = "differs" if len(keys) == 1 and not _is_plural(keys[0]) else "differ"
        which = ", ".join(keys)
        sentences.append(f"No verdicts{of}: {which} {verb} from the experiment's own settings.")
    return sentences


def _is_plural(key: str) -> bool:
    """Whether the last word of a key is a plural, as ``seeds`` or ``method.decay_steps``."""
    word = re.split(r"[._]", key)[-1]
    return word.endswith("s") and word not in ("bias", "eps")


def shared(explanations: Iterable[tuple[str, str]]) -> list[str]:
    """A sentence for each explanation there is; cells, given by name, share one."""
    names: dict[str, list[str]] = {}
    for name, explanation in explanations:
        if explanation:
            names.setdefault(explanation, []).append(name)
    return [f"{', '.join(cells)}: {explanation}." for explanation, cells in names.items()]


def listed(sentences: Iterable[str]) -> list[str]:
    """The lines of a Markdown list that fits a screen."""
    return [
        line
        for sentence in sentences
        for line in textwrap.wrap(
            sentence, COLUMNS, initial_indent="- ", subsequent_indent="  ", break_long_words=False
        )
    ]
