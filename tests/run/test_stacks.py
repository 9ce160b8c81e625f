"""Who is trained together: as wide as is fast, however many workers there are."""

from __future__ import annotations

import pytest

from pi3nn.run.member import Member, members
from pi3nn.run.workers import TrainingOptions
from tests.support.runs import composed


@pytest.mark.parametrize("workers", [2, 5, 16, 64])
def test_many_workers_do_not_make_stacks_narrow(workers: int) -> None:
    planned = members(composed("dataset=boston", "method=qd"))
    options = TrainingOptions(workers=workers)
    portions = options.stacks(planned)
    assert len(portions) <= max(12, 3 * options.processes)
    assert options.processes == min(workers, 16)
    assert ("not 64" in options.too_few_workers(len(portions))) == (workers == 64)


def test_long_trainings_are_stacked_so_that_a_kill_loses_minutes() -> None:
    """SQR's grid on a large set: 405 runs of 90,000 steps and more."""
    planned = members(composed("dataset=wine", "method=sqr_free", "protocol=released"))
    longer = members(
        composed("dataset=wine", "method=sqr_free", "protocol=released", "method.epochs=200000")
    )
    options = TrainingOptions(workers=2)
    widest, narrower = (max(map(len, options.stacks(m))) for m in (planned, longer))
    assert narrower < widest / 4
    assert sum(map(len, options.stacks(longer))) == len(longer)


def test_members_judged_on_other_rows_are_not_trained_together() -> None:
    def of(*overrides: str) -> list[Member]:
        years = ("dataset.train_years=[2001]", "dataset.test_year=2003", "seeds=[1,2]")
        names = ("experiment=streamflow", "dataset=camels", "method=pi3nn")
        return members(composed(*names, *years, *overrides))

    plain, control, leap = of(), of("dataset.control_year=2002"), of("dataset.test_year=2004")
    assert {member.rows for member in (*plain, *control, *leap)} == {365}
    portions = TrainingOptions(workers=1).stacks([*plain, *control, *leap])
    assert sorted(map(len, portions)) == [2, 2, 2]
