"""What the experiments out of distribution measure, on intervals whose answers a person can check;
and their commands, end to end on few rows and steps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pi3nn.data import flight
from pi3nn.paper import ood
from pi3nn.paper.ood import measures
from pi3nn.paper.ood.averages import Runs, beside_paper
from pi3nn.results.original_units import Intervals
from pi3nn.results.sweep_table import SweptJob
from pi3nn.store import Store


def of_width(*widths: float, index: Any = None) -> Intervals:
    """Intervals around 0 with these widths; the target is 0."""
    half, zero = np.asarray(widths) / 2, np.zeros(len(widths))
    return Intervals(zero, zero, -half, half, index)


def test_confidence_is_the_mean_training_width_over_the_width_at_most_one() -> None:
    sets = {"train": of_width(1, 3), "far": of_width(4, 8), "near": of_width(1, 1)}
    rows = measures.measure(sets, "train", clip=True)
    assert rows["far"]["score_mean"] == pytest.approx((2 / 4 + 2 / 8) / 2)
    assert rows["near"]["score_mean"] == 1
    assert (rows["far"]["score_auroc"], rows["near"]["score_auroc"]) == (1, 0.25)


def test_only_unclipped_scores_can_be_negative() -> None:
    sets = {"train": of_width(2, 2), "crossed": of_width(-1, -1)}
    for clip, expected in ((True, 0), (False, -2)):
        rows = measures.measure(sets, "train", clip)
        assert rows["crossed"]["score_mean"] == expected


def test_an_interval_that_sticks_out_of_a_higher_level_is_a_crossing() -> None:
    assert measures.between_levels([of_width(1, 2, 3), of_width(2, 2, 4)]) == 0
    assert measures.between_levels([of_width(1, 5, 3), of_width(2, 2, 4)]) == 1
    moved = Intervals(np.zeros(1), np.zeros(1), np.array([0.5]), np.array([9.0]), None)
    assert measures.between_levels([of_width(1), moved]) == 1


def test_growth_is_the_width_at_both_ends_over_the_mean_width_inside() -> None:
    line = of_width(6, 1, 3, 10, index=np.array([-7.0, -4.0, 4.0, 7.0]))
    found = measures.growth(line)
    assert found == {"inside": 2, "left": 6, "right": 10, "ratio": 4}


def beside(ours: float, scatter: float, runs: int, *changed: str) -> pd.DataFrame:
    """PI3NN on the OOD rows of the 10D function, where 0.28 ± 0.08 is printed."""
    row = {"method": "pi3nn", "set": "ood", "gamma": 0.9, "n": 40, "confidence_mean": ours}
    row |= {"confidence_std": 0.08, "seeds_std": scatter, "spread_std": scatter, "runs": runs}
    experiment = pd.DataFrame([{"protocol": "paper"}])
    found = Runs(experiment, lambda _: {}, {"pi3nn": changed})
    return beside_paper(pd.DataFrame([row]), "conf_10d", found)


@pytest.mark.parametrize(
    ("ours", "scatter", "runs", "verdict"),
    [
        (0.284, np.nan, 1, "equal as printed"),
        (0.287, np.nan, 1, "within sampling error"),
        (0.35, np.nan, 1, "differs"),
        (0.45, 0.04, 10, "differs"),
        (0.35, 0.04, 10, "within sampling error"),
    ],
)
def test_ours_is_judged_by_the_scatter_of_single_runs(
    ours: float, scatter: float, runs: int, verdict: str
) -> None:
    table = beside(ours, scatter, runs)
    assert table["paper"].item() == "0.28 ± 0.08"
    assert table["verdict"].item() == verdict
    reason = table["explanation"].item()
    assert ("200 tanh units" in reason) == (verdict == "differs")
    assert ("one run only" in reason) == (verdict == "differs" and runs == 1)


def test_runs_with_other_settings_get_no_verdict() -> None:
    table = beside(0.284, np.nan, 1, "method.steps")
    assert table[["paper", "verdict", "explanation"]].to_numpy().tolist() == [
        ["0.28 ± 0.08", "", ""]
    ]


def test_other_seeds_are_no_other_settings_of_an_experiment_judged_by_single_runs() -> None:
    class Named:
        def result(self, key: str) -> dict[str, Any]:
            return {"member": {"method": key}}

    store: Any = Named()
    jobs = [
        SweptJob({"method": "pi3nn"}, store, ["pi3nn"], [0.9], "run", ["seeds"]),
        SweptJob({"method": "qd"}, store, ["qd"], [0.9], "run", ["method.epochs", "seeds"]),
    ]
    assert ood._changed(jobs) == {"pi3nn": [], "qd": ["method.epochs"]}


def run(folder: Path, *arguments: str) -> str:
    start = "from pi3nn.cli.pi3nn_run import main; main()"
    command = [sys.executable, "-c", start, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


FEW = ("dataset.rows=200", "dataset.test_rows=50", "dataset.ood_rows=40", "method.hidden=4")


def test_one_command_compares_methods_and_resumes(tmp_path: Path) -> None:
    command = ["experiment=cubic10d", "method=pi3nn,pi3nn_no_ood", "method.steps=20", *FEW]
    command += ["seeds=[1,2]", "levels=[0.8,0.9]"]
    said = run(tmp_path, *command)
    assert "0.91 ± 0.15" in said
    assert "0.80 ± 0.18" in said
    assert "of 50 test rows: PI3NN (with OOD) 0, PI3NN (no OOD) 0" in said
    (folder,) = (tmp_path / "results" / "cubic10d").iterdir()
    for name in ("table.csv", "table.md", "table.tex", "figure.png", "figure.pdf", "shift.png"):
        assert (folder / name).stat().st_size > 0
    numbers = pd.read_csv(folder / "table.csv")
    assert set(numbers["method"]) == {"pi3nn", "pi3nn_no_ood"}
    assert (numbers["runs"] == 2).all()
    before = Store(tmp_path / "results" / "runs").keys()
    assert run(tmp_path, *command)
    assert Store(tmp_path / "results" / "runs").keys() == before


def test_the_1d_example_shows_the_steps_and_takes_one_method(tmp_path: Path) -> None:
    few = [f for f in FEW if not f.startswith("method")]
    said = run(tmp_path, "experiment=cubic1d", "method=pi3nn", "method.steps=20", *few)
    assert "PI3NN (with OOD)" in said
    assert "PIVEN" not in said
    (folder,) = (tmp_path / "results" / "cubic1d").iterdir()
    assert folder.name.startswith("normal-paper_")
    assert (folder / "figure.png").stat().st_size > 0


def test_the_highest_flows_are_the_top_tenth_of_the_test_days() -> None:
    zero, flow = np.zeros(20), np.arange(20.0)
    test = Intervals(flow, flow, flow - flow / 2, flow + flow / 2, None)
    train = Intervals(flow, flow, zero, flow, None)
    found = measures.flows({"train": train, "test": test})
    assert found["test"]["high_width"] == pytest.approx((18 + 19) / 2)
    assert (found["train"]["nse"], found["test"]["kge"]) == pytest.approx((1, 1))


def test_streamflow_of_the_bundled_basin_end_to_end(tmp_path: Path) -> None:
    few = ["encoder.epochs=2", "encoder.units=4", "method.hidden=4", "method.steps=20"]
    said = run(tmp_path, "experiment=streamflow", "dataset=camels", "method=pi3nn", *few)
    assert "PI3NN (with OOD)" in said
    (folder,) = (tmp_path / "results" / "streamflow").iterdir()
    assert (folder / "figure.pdf").stat().st_size > 0
    (key,) = Store(tmp_path / "results" / "runs").keys()
    assert Store(tmp_path / "results" / "runs").weights(key)["encoder.out.weight"].shape == (4, 1)


def test_flights_of_ones_own_end_to_end(tmp_path: Path) -> None:
    """Four airports, the larger the longer the way to the runway."""
    rng = np.random.default_rng(1)
    origin = np.repeat(list("ABCD"), 700)
    drawn = {name: rng.normal(0, 10, len(origin)).round() for name in flight.COLUMNS}
    flights = pd.DataFrame(drawn).astype(int)
    flights["TaxiOut"] += np.repeat([120, 80, 40, 0], 700)
    flights["DayofMonth"], flights["DayOfWeek"], flights["Month"] = 3, 5, 1
    flights.assign(Origin=origin).to_csv(tmp_path / "flights.csv", index=False)
    (tmp_path / "ranks.csv").write_text("Origin,percentage\nA,.5\nB,.005\nC,.001\nD,.0005\n")
    data = ["dataset.path=flights.csv", "dataset.rank_table=ranks.csv", "dataset.min_flights=0"]
    data += ["dataset.train_rows=400", "dataset.test_rows=200"]
    command = [
        "experiment=flight",
        "method=pi3nn,pi3nn_no_ood",
        "method.steps=300",
        "method.hidden=8",
    ]
    said = run(tmp_path, *command, *data, "method.stop_from=null")
    assert "0.24 ± 0.05" in said  # printed for PI3NN on rank 1
    numbers = pd.read_csv(next((tmp_path / "results" / "flight").glob("paper_*/table.csv")))
    pi3nn = numbers[numbers["method"] == "pi3nn"].set_index("set")["confidence_mean"]
    ranks = [pi3nn[f"rank{i}"] for i in (1, 2, 3, 4)]
    assert ranks == sorted(ranks)
    assert set(numbers["method"]) == {"pi3nn", "pi3nn_no_ood"}
    # Rank 1 is 12 standard deviations away in one input, and the table says in which.
    (row,) = (line for line in said.splitlines() if line.startswith("| 1 ") and "+1" in line)
    assert "+12." in row or "+11." in row


@pytest.mark.slow
def test_the_released_slices_of_flights_show_both_targets(
    tmp_path: Path, mirror: Callable[[str], Path]
) -> None:
    mirror("flight/flights_2008_jan_apr.csv.gz")
    said = run(tmp_path, "experiment=flight", "protocol=released")
    for title in ("PI3NN (with OOD) ", "PI3NN (with OOD), fixed targets", "QD", "DER"):
        assert f"| {title}" in said
    numbers = pd.read_csv(tmp_path / "results" / "flight" / "released" / "table.csv")
    for _, rows in numbers.groupby("method"):
        assert {"train", "rank1", "rank2", "rank3", "rank4"} <= set(rows["set"])
    assert numbers["method"].nunique() == 8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "alpha", "beta", "train", "ood_rows"),
    [
        ("pi3nn_no_ood", 2.6489, 2.5925, (0.92, 0.12), (0.80, 0.18)),
        # Printed as 0.15 and 0.28, which is truncated.
        ("pi3nn", 2.4040, 2.4658, (0.91, 0.16), (0.29, 0.08)),
    ],
)
def test_the_authors_10d_run_is_repeated(
    tmp_path: Path,
    method: str,
    alpha: float,
    beta: float,
    train: tuple[float, float],
    ood_rows: tuple[float, float],
) -> None:
    run(tmp_path, "experiment=cubic10d", "protocol=released", f"method={method}")
    rows = {row["set"]: row for row in Store(tmp_path / "results" / "runs").rows()}
    assert rows["train"]["alpha"] == pytest.approx(alpha, abs=1e-3)
    assert rows["train"]["beta"] == pytest.approx(beta, abs=1e-3)
    for name, printed in (("train", train), ("ood", ood_rows)):
        found = (rows[name]["confidence_mean"], rows[name]["confidence_std"])
        assert tuple(round(value, 2) for value in found) == printed
