"""A single run beside the paper, as the screen shows it."""

from __future__ import annotations

import pandas as pd
import pytest

from pi3nn.paper import verdicts
from pi3nn.paper.run_verdicts import beside_paper
from pi3nn.results.tables import Entry
from tests.support.paper_records import entry


def test_the_screen_has_verdict_and_reason_of_the_engine_for_every_printed_statistic() -> None:
    yacht = entry("yacht", "pi3nn", "released", n=31)
    shown = beside_paper(yacht, ())
    assert list(shown.cells) == ["mean", "std", "best", "worst", "width"]
    for name, cell in shown.cells.items():
        table, statistic = ("mpiw", "mpiw") if name == "width" else ("table1", name)
        judged = verdicts.on_uci(yacht, "released", (table, "pi3nn", "yacht", statistic))
        assert (cell.text, cell.verdict) == (judged.printed, judged.verdict)
        assert judged.reason in cell.explanation


def test_other_settings_get_no_verdict() -> None:
    shown = beside_paper(entry("boston", "pi3nn", "paper"), ["method.steps", "seeds"])
    assert shown.changed == ["method.steps", "seeds"]
    assert {cell.text for cell in shown.cells.values()} >= {"0.95"}
    assert not any(cell.verdict or cell.explanation for cell in shown.cells.values())


@pytest.mark.parametrize("method", ["linear", "my_method"])
def test_of_a_method_that_is_not_in_the_paper_nothing_is_printed(method: str) -> None:
    assert not beside_paper(entry("boston", method, "paper"), ()).cells


def test_of_another_level_or_experiment_nothing_is_printed() -> None:
    boston = entry("boston", "pi3nn", "paper")
    other = Entry.of(boston.records, "run", 0.9)
    assert not beside_paper(other, ()).cells
    own = Entry.of(pd.DataFrame(boston.records).assign(experiment="fit"), "run", 0.95)
    assert not beside_paper(own, ()).cells
