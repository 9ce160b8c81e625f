"""What a run would do, in words and in seconds."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from pi3nn.run import forecast
from pi3nn.run.member import members
from pi3nn.store import Store
from tests.support.runs import composed, run

LINEAR = ("dataset=yacht", "method=linear", "splits=[1,2,3]", "seeds=[1]", "workers=1")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (89.5, "90 s"), (90, "2 min"), (89 * 60, "89 min"), (2 * 3600, "2.0 h")],
)
def test_times_are_for_people(seconds: float, words: str) -> None:
    assert forecast.readable(seconds) == words


def test_the_end_is_that_of_the_last_worker() -> None:
    assert forecast.end([3, 2, 2], 1) == 7
    assert forecast.end([3, 2, 2], 2) == 4
    assert forecast.end([3, 2, 2], 5) == 3


def test_stored_members_tell_the_time_and_unknown_ones_are_probed(tmp_path: Path) -> None:
    trained, _ = run(composed(*LINEAR, f"store={tmp_path}"))
    store = Store(tmp_path)
    seconds = [store.result(member.key)["member"]["seconds"] for member in trained]
    new = members(composed(*LINEAR[:2], "splits=[4]", "seeds=[1]"))
    assert forecast.seconds_of([new], store) == ([statistics.median(seconds)], 0)
    times, probed = forecast.seconds_of([new], Store(tmp_path / "empty"))
    assert times[0] > 0
    assert probed == 1


def test_what_comes_before_the_first_steps_is_not_taken_for_their_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten seconds of loading, then a thousandth of the training a second: a thousand seconds more."""
    clock = iter([0.0, 10.0, 11.0, 12.0])
    monkeypatch.setattr(forecast.time, "process_time", lambda: next(clock))

    def fit_stack(stack: object, prepared: object, watch: Callable[[float, float], None]) -> None:
        for share in (0.001, 0.002, 0.003):
            watch(share, 0.0)

    monkeypatch.setattr(forecast.one_stack, "fit_stack", fit_stack)
    assert forecast.probe([], budget=1.5) == pytest.approx(12 + 997)
