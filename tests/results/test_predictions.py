"""Every row of a run, in the units of the target."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pi3nn.errors import UserError
from pi3nn.results import predictions, run_notes
from pi3nn.results.original_units import intervals
from pi3nn.run.member import Member
from pi3nn.store import Store
from tests.support.models import trained
from tests.support.runs import composed, run


def left(folder: Path, members: list[Member], store: Store) -> Path:
    """A folder with the note of these members."""
    folder.mkdir(exist_ok=True)
    run_notes.leave(folder, run_notes.Note(store, [m.key for m in members], [0.8, 0.9]))
    return folder


def test_rows_have_their_targets_and_the_bounds_that_the_records_were_counted_on(
    tmp_path: Path,
) -> None:
    members, store = trained(tmp_path, "linear")
    table = predictions.table(left(tmp_path / "out", members, store))
    assert list(table) == [
        "split", "seed", "set", "row", "y", "prediction",
        "lower_0.8", "upper_0.8", "lower_0.9", "upper_0.9",
    ]  # fmt: skip
    for name, rows in members[0].split.sets.items():
        own = table[table["set"] == name]
        np.testing.assert_allclose(own["y"], rows.y, atol=1e-5 * rows.y.std())
        assert own["row"].tolist() == list(range(len(rows.y)))
    for record in store.rows([members[0].key]):
        own = table[table["set"] == record["set"]]
        lower, upper = own[f"lower_{record['gamma']:g}"], own[f"upper_{record['gamma']:g}"]
        assert own["y"].between(lower, upper).mean() == pytest.approx(record["picp"], abs=0.01)
        width = record["mpiw"] * store.result(record["key"])["scalars"]["y_std"]
        assert (upper - lower).mean() == pytest.approx(width, rel=1e-4)


def test_targets_come_back_with_the_digits_they_had(tmp_path: Path) -> None:
    members, store = trained(tmp_path, "linear")
    table = predictions.table(left(tmp_path / "out", members, store), ["set=test"])
    y = members[0].split.sets["test"].y.round(2)  # as the file has them
    np.testing.assert_array_equal(table["y"], y)


def test_only_what_is_in_the_units_of_a_large_target_is_rounded(tmp_path: Path) -> None:
    cfg = composed(
        "dataset=yacht", "method=pi3nn", "++sweep={method.l2: [0.001, 0.002], method.hidden: [4]}",
        "seeds=[7]", "splits=[1]", "method.steps=5", "levels=[0.8,0.9]", "workers=1",
        f"store={tmp_path / 'runs'}",
    )  # fmt: skip
    members, _ = run(cfg)
    store = Store(tmp_path / "runs")
    for member in members:
        result = store.result(member.key)
        result["scalars"]["y_std"] = 2e7
        store.replace(member.key, result, store.predictions(member.key))
    table = predictions.table(left(tmp_path / "out", members, store), ["method.l2=0.001"])
    assert set(table["method.l2"]) == {0.001}
    assert (set(table["split"]), set(table["seed"])) == ({1}, {7})
    for _, own in table.groupby("set"):
        assert own["row"].tolist() == list(range(len(own)))
    in_units = ["y", "prediction", "lower_0.8", "upper_0.8", "lower_0.9", "upper_0.9"]
    assert (table[in_units] % 10 == 0).all(axis=None)


def test_levels_that_were_trained_apart_are_columns_of_one_row(tmp_path: Path) -> None:
    members, store = trained(tmp_path, "qd")
    assert len(members) == 2
    table = predictions.table(left(tmp_path / "out", members, store), ["set=test"])
    assert len(table) == len(members[0].split.sets["test"].y)
    assert table[["lower_0.8", "lower_0.9"]].notna().all(axis=None)


@pytest.mark.parametrize("method", ["qd", "piven"])
def test_levels_that_were_trained_apart_are_nested_with_the_point_inside(
    tmp_path: Path, method: str
) -> None:
    cfg = composed(
        "dataset=yacht", f"method={method}", "sweep={}", "method.hidden=8", "method.epochs=60", "seeds=[1]",
        "method.soften=160", "method.lambda_in=15", "method.sigma_in=0.1", "splits=[1]", "levels=[0.8,0.9]", "workers=1",
        f"store={tmp_path / 'runs'}",
    )  # fmt: skip
    members, _ = run(cfg)
    store = Store(tmp_path / "runs")
    raw = [intervals(store, m.key, g)["train"] for m, g in zip(members, (0.8, 0.9), strict=True)]
    assert (raw[0].lower < raw[1].lower).any()  # as the networks say them, they cross
    table = predictions.table(left(tmp_path / "out", members, store))
    assert (table["lower_0.9"] <= table["lower_0.8"]).all()
    assert (table["upper_0.8"] <= table["upper_0.9"]).all()
    assert table["prediction"].between(table["lower_0.8"], table["upper_0.8"]).all()


def test_the_point_is_inside_the_interval_of_an_only_level(tmp_path: Path) -> None:
    cfg = composed(
        "dataset=yacht", "method=piven", "sweep={}", "method.hidden=8", "method.epochs=60", "seeds=[1]", "splits=[1]",
        "levels=[0.2]", "calibrate=cross", "folds=2", "repeats=1", "workers=1", f"store={tmp_path / 'runs'}",
    )  # fmt: skip
    members, _ = run(cfg)
    store = Store(tmp_path / "runs")
    raw = intervals(store, members[0].key, 0.2)["train"]
    assert ((raw.point < raw.lower) | (raw.upper < raw.point)).any()  # moved inwards past it
    folder = tmp_path / "out"
    folder.mkdir()
    run_notes.leave(folder, run_notes.Note(store, [members[0].key], [0.2]))
    table = predictions.table(folder)
    assert table["prediction"].between(table["lower_0.2"], table["upper_0.2"]).all()


def test_models_are_told_apart_by_what_differs_and_filtered_by_it(tmp_path: Path) -> None:
    cfg = composed(
        "dataset=yacht", "method=pi3nn", "sweep={method.hidden: [4, 8]}", "seeds=[1,2]", "splits=[1]",
        "method.steps=5", "levels=[0.8,0.9]", "workers=1", f"store={tmp_path / 'runs'}",
    )  # fmt: skip
    members, _ = run(cfg)
    folder = left(tmp_path / "out", members, Store(tmp_path / "runs"))
    assert len(predictions.models(Store(tmp_path / "runs"), [m.key for m in members])) == 4
    table = predictions.table(folder, ["set=test", "method.hidden=8", "seed=2"])
    assert set(table["method.hidden"]) == {8}
    assert len(table) == len(members[0].split.sets["test"].y)
    with pytest.raises(UserError, match="did you mean 'set'"):
        predictions.table(folder, ["sets=test"])
    with pytest.raises(UserError, match="nothing has set=tset"):
        predictions.table(folder, ["set=tset"])
