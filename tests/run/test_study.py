"""A study in a folder: what it asks hangs on what it has, not on who asks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from optuna.trial import Trial, TrialState

from pi3nn import atomic
from pi3nn.errors import UserError
from pi3nn.run import study
from pi3nn.run.space import Space
from pi3nn.run.study import JOURNAL, Outcome, Sampling, SharedStudy
from tests.conftest import REPOSITORY

SPACE = Space.of(
    OverridesParser.create().parse_overrides(["x=interval(-1,1)", "k=int(interval(1,9))", "c=a,b"])
)
GRID = Space.of(OverridesParser.create().parse_overrides(["x=range(0,4)", "c=a,b"]))

GONE = Outcome(None, {study.REASON: "the node is gone"}, lost=True)


def opened(folder: Path, sampler: str = "TPESampler", space: Space = SPACE) -> SharedStudy:
    return SharedStudy(folder, Sampling(sampler, 7, space), {"spaces": space.described()})


def value(trial: Trial) -> float:
    return float(trial.params["x"] ** 2 + (trial.params["c"] == "a"))


def tell(shared: SharedStudy, trials: list[Trial]) -> None:
    shared.tell([(trial, Outcome(value(trial), {})) for trial in trials])


def searched(shared: SharedStudy, batch: int, trials: int) -> None:
    with shared.attended():
        while mine := shared.take(batch, trials):
            tell(shared, mine)


def points(folder: Path) -> list[tuple[object, ...]]:
    return [
        (trial.number, trial.state.name, trial.value, *trial.params.items())
        for trial in opened(folder).study.trials
    ]


def test_the_same_seed_finds_the_same(tmp_path: Path) -> None:
    for name in ("one", "two"):
        searched(opened(tmp_path / name), 4, 24)
    assert points(tmp_path / "one") == points(tmp_path / "two")
    assert len({point[3:] for point in points(tmp_path / "one")}) == 24


@pytest.mark.parametrize("told", [0, 1, 3])
def test_who_goes_on_asks_what_would_have_been_asked(tmp_path: Path, told: int) -> None:
    searched(opened(tmp_path / "whole"), 4, 24)
    killed = opened(tmp_path / "killed")
    tell(killed, killed.take(4, 24))
    tell(killed, killed.take(4, 24)[:told])  # the process never attended: it counts as gone
    searched(opened(tmp_path / "killed"), 4, 24)
    assert points(tmp_path / "killed") == points(tmp_path / "whole")


def test_a_kill_while_it_asks_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even half a trial is in the journal, whose next key would be another draw."""
    searched(opened(tmp_path / "whole"), 4, 24)
    killed = opened(tmp_path / "killed")
    for _ in range(3):
        tell(killed, killed.take(4, 24))
    before = (tmp_path / "killed" / JOURNAL).read_bytes()
    suggest = Space.suggest

    def interrupted(self: Space, trial: Trial) -> None:
        suggest(self, trial)
        if trial.number == 14:
            raise KeyboardInterrupt

    monkeypatch.setattr(Space, "suggest", interrupted)
    with pytest.raises(KeyboardInterrupt):
        killed.take(4, 24)
    monkeypatch.undo()
    assert (tmp_path / "killed" / JOURNAL).read_bytes() == before
    searched(opened(tmp_path / "killed"), 4, 24)
    assert points(tmp_path / "killed") == points(tmp_path / "whole")


def test_a_batch_is_told_as_a_whole(tmp_path: Path) -> None:
    shared = opened(tmp_path)
    first, second = shared.take(2, 2)
    with pytest.raises(ValueError, match="not acceptable"):
        shared.tell([(first, Outcome(1.0, {})), (second, Outcome(float("nan"), {}))])
    states = [trial.state for trial in opened(tmp_path).study.trials]
    assert states == [TrialState.RUNNING, TrialState.RUNNING]


def test_a_process_that_is_there_keeps_its_trials(tmp_path: Path) -> None:
    """Another process takes them up as soon as that is killed, and not before."""
    code = (
        "import time; from pathlib import Path; from tests.run.test_study import opened\n"
        "shared = opened(Path('study'))\n"
        "with shared.attended():\n"
        "    shared.take(4, 8); print('taken', flush=True); time.sleep(600)"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "taken\n"
        here = opened(tmp_path / "study")
        with here.attended():
            assert [trial.number for trial in here.take(4, 8)] == [4, 5, 6, 7]
            assert here.take(4, 8) == []
            other.send_signal(signal.SIGKILL)
            other.wait()
            assert [trial.number for trial in here.take(4, 8)] == [0, 1, 2, 3]
    finally:
        other.kill()
        other.stdout.close()  # type: ignore[union-attr]
        other.wait()


@pytest.mark.parametrize("sampler", ["GridSampler", "BruteForceSampler"])
def test_a_grid_is_tried_once_and_no_more(tmp_path: Path, sampler: str) -> None:
    searched(opened(tmp_path, sampler, GRID), 3, 100)
    found = [tuple(trial.params.items()) for trial in opened(tmp_path, sampler, GRID).study.trials]
    assert len(found) == len(set(found)) == 8


@pytest.mark.parametrize("sampler", ["RandomSampler", "QMCSampler", "NSGAIISampler", "GPSampler"])
def test_other_samplers_go_on_too(tmp_path: Path, sampler: str) -> None:
    searched(opened(tmp_path, sampler), 4, 8)
    searched(opened(tmp_path, sampler), 4, 14)
    trials = opened(tmp_path, sampler).study.trials
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 14
    assert len({tuple(trial.params.items()) for trial in trials}) > 10


def test_a_sampler_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no such sampler \(did you mean 'TPESampler'\?\)"):
        Sampling("TPSampler", 1, SPACE).check()
    with pytest.raises(UserError, match="x is an interval, which has no grid"):
        Sampling("GridSampler", 1, SPACE).check()


def test_a_study_for_another_space_is_refused_and_kept(tmp_path: Path) -> None:
    searched(opened(tmp_path), 4, 4)
    before = (tmp_path / JOURNAL).read_bytes()
    with pytest.raises(UserError, match=r"made for other spaces \(k: .*nothing was changed"):
        opened(tmp_path, space=GRID)
    assert (tmp_path / JOURNAL).read_bytes() == before


def test_half_a_line_is_cut_before_the_next(tmp_path: Path) -> None:
    searched(opened(tmp_path), 4, 4)
    with (tmp_path / JOURNAL).open("ab") as journal:
        journal.write(b'{"op_code": 4, "wor')
    searched(opened(tmp_path), 4, 8)
    assert [trial.state for trial in opened(tmp_path).study.trials] == [TrialState.COMPLETE] * 8


def test_trainings_that_fail_and_trials_that_cant_be_run_differ(tmp_path: Path) -> None:
    shared = opened(tmp_path)
    first, second = shared.take(2, 2)
    diverged = Outcome(None, {study.REASON: "not finite"})
    impossible = Outcome(None, {study.REASON: "too large"}, failed=True)
    shared.tell([(first, diverged), (second, impossible)])
    states = [trial.state for trial in opened(tmp_path).study.trials]
    assert states == [TrialState.PRUNED, TrialState.FAIL]


def test_what_was_lost_is_for_the_next_process_and_fails_in_the_end(tmp_path: Path) -> None:
    params = None
    for attempt in range(1, study.MOST_ATTEMPTS + 1):
        shared = opened(tmp_path)
        with shared.attended():
            trial, *others = shared.take(2, 2)
            params = params or trial.params
            assert (trial.number, trial.params) == (0, params)
            shared.tell([(trial, GONE), *((other, Outcome(1.0, {})) for other in others)])
            assert shared.take(2, 2) == []
        trials = shared.study.trials
        assert study.lost(trials) == (trials[:1] if attempt < study.MOST_ATTEMPTS else [])
    assert [trial.state for trial in trials] == [TrialState.FAIL, TrialState.COMPLETE]
    assert trials[0].user_attrs[study.REASON] == "given up after 3 attempts: the node is gone"


def test_what_is_taken_up_and_evaluated_is_no_longer_lost(tmp_path: Path) -> None:
    shared = opened(tmp_path)
    with shared.attended():
        shared.tell([(trial, GONE) for trial in shared.take(1, 1)])
    assert study.lost(shared.study.trials)
    again = opened(tmp_path)
    with again.attended():
        mine = again.take(1, 1)
        assert not study.lost(again.study.trials)
        tell(again, mine)
    assert [trial.state for trial in again.study.trials] == [TrialState.COMPLETE]


def test_the_folder_of_a_process_goes_with_it(tmp_path: Path) -> None:
    searched(opened(tmp_path), 4, 4)
    assert {path.name for path in tmp_path.iterdir()} == {JOURNAL, atomic.LOCK}
