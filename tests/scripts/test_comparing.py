"""scripts/compare: sets and splits, how a result is judged, kept and resumed, and what follows of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.conftest import REPOSITORY
from tests.support.scripts import script_module
from tests.support.waiting import PATIENCE, is_alive, wait_for

script_module("compare")
from comparing import files, measure, run, sets, summary, targets  # noqa: E402
from comparing.others import OTHERS  # noqa: E402


def record(split: int, score: float, **more: object) -> dict[str, object]:
    usual = {"version": "a 1", "set": "yacht", "level": 0.95, "train": 90, "test": 10}
    numbers = {"inside": 9, "width": 1.0, "seconds": 2.0, "inside_by_width": "0" + " 1" * 9}
    return {**usual, **numbers, "split": split, "score": score, **more}


def result(split: int, score: float, **more: object) -> list[dict[str, object]]:
    return [record(split, score, level=level, **more) for level in (0.9, 0.95)]


def records(**scores: list[float]) -> pd.DataFrame:
    lines = [
        record(split, score, method=method)
        for method, of_splits in scores.items()
        for split, score in enumerate(of_splits, 1)
    ]
    return pd.DataFrame(lines).rename(columns=str)


@pytest.mark.parametrize("name", list(sets.SETS))
def test_a_set_is_numbers_and_codes_and_its_splits_share_no_row(name: str) -> None:
    table = sets.table(name)
    assert np.isfinite(table.x).all()
    assert np.isfinite(table.y).all()
    codes = table.x[:, list(table.categorical)]
    assert (codes == codes.astype(int)).all()
    assert (codes >= 0).all()
    train, test = sets.split(name, 1, codes=True)
    again, _ = sets.split(name, 1, codes=False)
    assert len(train.y) + len(test.y) == len(table.y)
    assert len(test.y) == round(len(table.y) / 10)
    assert np.array_equal(np.sort(np.append(train.y, test.y)), np.sort(table.y))
    assert np.array_equal(again.y, train.y)


@pytest.mark.parametrize("name", [n for n, s in sets.SETS.items() if s.use == sets.PROOF])
def test_no_input_of_the_proof_gives_the_target_away(name: str) -> None:
    table = sets.table(name)
    with np.errstate(invalid="ignore"):
        ranks = pd.DataFrame(table.x).rank().corrwith(pd.Series(table.y).rank())
    assert ranks.abs().max() < 0.98


def test_categories_become_one_column_each_behind_the_numbers() -> None:
    table = sets.Table(np.array([[0.0, 5.0], [2.0, 6.0], [1.0, 7.0]]), np.zeros(3), (0,))
    assert table.one_hot().x.tolist() == [[5, 1, 0, 0], [6, 0, 0, 1], [7, 0, 1, 0]]
    assert table.one_hot().categorical == ()


def test_large_sets_have_five_splits_and_others_twenty() -> None:
    assert (len(sets.splits("kin8nm")), len(sets.splits("yacht"))) == (5, 20)


def test_a_result_is_judged_by_hand() -> None:
    bounds = np.column_stack([np.zeros(10), np.arange(1.0, 11)])
    y = np.array([0.5] * 9 + [12.0])
    found = measure.judged(bounds, y, 0.9, scale=2.0)
    assert found["inside"] == 9
    assert found["width"] == pytest.approx(5.5 / 2)
    assert found["score"] == pytest.approx((5.5 + 20 * 2 / 10) / 2)
    assert found["inside_by_width"] == "1 1 1 1 1 1 1 1 1 0"


def test_a_method_that_fails_leaves_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no rows\nat all")

    method = measure.Method("", ("scikit-learn",), fail)
    monkeypatch.setitem(measure.METHODS, "failing", method)
    lines = measure.measured("yacht", 1, "failing")
    assert [line["failed"] for line in lines] == ["ValueError: no rows"] * 2
    assert "score" not in lines[0]


def test_what_a_kill_left_half_written_is_run_again(tmp_path: Path) -> None:
    version = measure.version("mapie-cqr")
    for split in (1, 2):
        files.append(tmp_path, "mapie-cqr", result(split, 1.0, version=version))
    path = files.path_of(tmp_path, "mapie-cqr")
    path.write_text(path.read_text()[:-5])
    keys = [("yacht", 1, "mapie-cqr"), ("yacht", 2, "mapie-cqr")]
    assert run.missing(tmp_path, keys) == keys[1:]
    files.append(tmp_path, "mapie-cqr", result(2, 3.0, version=version))
    assert run.missing(tmp_path, keys) == []
    stored = files.stored(tmp_path, "mapie-cqr")
    assert stored.groupby("split")["score"].mean().tolist() == [1.0, 3.0]


def test_failures_are_tried_again_and_results_of_other_versions_do_not_count(
    tmp_path: Path,
) -> None:
    version = measure.version("mapie-cqr")
    files.append(tmp_path, "mapie-cqr", result(1, 1.0, version=version, failed="ValueError: no"))
    files.append(tmp_path, "mapie-cqr", result(2, 1.0, version="mapie 0.0.1"))
    keys = [("yacht", 1, "mapie-cqr"), ("yacht", 2, "mapie-cqr")]
    assert run.missing(tmp_path, keys) == keys


def test_others_keep_results_of_old_versions_and_ours_start_anew(tmp_path: Path) -> None:
    for method in ("mapie-cqr", "cqr"):
        for split, version in [(1, "old"), (2, "old"), (1, "new")]:
            files.append(tmp_path, method, result(split, 1.0, version=version))
    assert files.stored(tmp_path, "mapie-cqr")["version"].tolist() == ["old"] * 4 + ["new"] * 2
    assert set(files.that_count(tmp_path, "mapie-cqr")["version"]) == {"old"}
    assert files.stored(tmp_path, "cqr")["version"].tolist() == ["new"] * 2


@pytest.mark.parametrize("pattern", measure.OF_NUMBERS)
def test_what_our_results_stand_under_is_there(pattern: str) -> None:
    assert list(measure.ROOT.glob(pattern))


def test_first_splits_of_all_sets_come_first_small_sets_before_large_ones() -> None:
    keys = run.in_order(["kin8nm", "yacht"], ["ngboost"], [1, 2])
    assert [key[:2] for key in keys] == [("yacht", 1), ("kin8nm", 1), ("yacht", 2), ("kin8nm", 2)]


def test_the_ratio_is_to_the_best_other_method_on_the_splits_that_both_have() -> None:
    table = records(ngboost=[2, 4, 6], **{"mapie-cqr": [3, 5, 7]}, pi3nn=[1, 3], cqr=[3, 3, 3])
    found = summary.compared(table, 0.95).loc["yacht"]
    assert set(found["best"]) == {"ngboost"}
    assert found["ratio"].to_dict() == pytest.approx(
        {"ngboost": 1, "mapie-cqr": 5 / 4, "pi3nn": 2 / 3, "cqr": 3 / 4}
    )
    assert found.loc["pi3nn", "splits"] == 2
    assert found.loc["ngboost", "error"] == pytest.approx(0, abs=1e-12)


def test_what_is_reached_and_what_not_is_said_of_each_target() -> None:
    ours = records(**{"mapie-cqr": [2.0, 2.0], "pi3nn-cross": [2.0, 2.4]})
    text = targets.table(ours, "pi3nn-cross", 0.5, "mapie-bootstrap")
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]
    assert lines == [
        ["0.95", "ratio, all sets", "0.80 at most", "1.100", "**no**"],
        ["0.95", "ratio, without naval", "0.85 at most", "1.100", "**no**"],
        ["0.95", "ratio of each set", "1.05 at most", "yacht 1.10 ± 0.10", "**no**"],
        ["0.95", "mean coverage", "0.945 to 0.965", "0.900 ± 0.000", "**no**"],
        ["both", "time over mapie-bootstrap, small sets", "1 at most", "0.50", "yes"],
    ]
    better = ours.assign(score=ours["score"] / (1 + (ours["method"] == "pi3nn-cross")))
    assert targets.table(better, "pi3nn-cross", 2.0, "").count("| yes |") == 3
    assert targets.table(ours, "sqr", 0.5, "") == "None of ours is stored yet."


def test_coverage_by_width_is_that_of_each_tenth() -> None:
    table = records(ngboost=[1, 1])
    assert summary.by_width(table, 0.95, "ngboost").tolist() == [0.0] + [1.0] * 9


@pytest.mark.slow
@pytest.mark.parametrize("name", list(OTHERS))
def test_other_methods_cover_fresh_rows_and_give_the_same_bounds_again(name: str) -> None:
    for package in OTHERS[name].packages:
        pytest.importorskip(package.replace("-", "_").replace("scikit_learn", "sklearn"))
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.normal(size=(900, 2)), rng.integers(0, 3, 900)])
    table = sets.Table(x, x[:, 0] + x[:, 2] + rng.normal(size=900), (2,))
    table = table if OTHERS[name].codes else table.one_hot()
    train, new = table.rows(np.arange(150)), table.rows(np.arange(150, 900))
    bounds = measure.intervals(OTHERS[name], train, new.x, 1)
    assert np.array_equal(bounds, measure.intervals(OTHERS[name], train, new.x, 1))
    inside = (bounds[..., 0] <= new.y[:, None]) & (new.y[:, None] <= bounds[..., 1])
    low = (0.5, 0.6) if name in ("quantile-boosting", "ngboost") else (0.82, 0.88)
    assert (inside.mean(axis=0) >= low).all()
    assert (inside.mean(axis=0) <= 0.995).all()


POOL = """
import os, time
from pathlib import Path
from comparing import run

def busy(*_):
    open(f"{os.getpid()}.pid", "w").close()
    time.sleep(60)

run.measured = busy
if __name__ == "__main__":
    run.run(Path("."), [("yacht", 1, "linear")], 1)
"""


def test_a_worker_ends_within_two_seconds_with_a_comparison_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(POOL)
    path = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "scripts")])
    environment = {**os.environ, "PYTHONPATH": path}
    parent = subprocess.Popen([sys.executable, "pool.py"], cwd=tmp_path, env=environment)
    wait_for(lambda: any(tmp_path.glob("*.pid")), 60)
    (worker,) = (int(path.stem) for path in tmp_path.glob("*.pid"))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_for(lambda: not is_alive(worker), PATIENCE)
