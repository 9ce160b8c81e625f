"""The account of a model says what its rows say."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pi3nn.data.own.columns import InputColumn, Schema
from pi3nn.models import model_files, prediction
from pi3nn.results import run_notes
from pi3nn.results.account import ON_TEST_ROWS, OUT_OF_FOLD, Account
from pi3nn.run.account import account, decoded
from pi3nn.run.member import Member
from pi3nn.store import Store
from tests.support.own_table import own_run
from tests.support.runs import composed, run


def noisy(rows: int = 500) -> pd.DataFrame:
    """The error grows with `x`; the last rows of the file are far from all others in `far`."""
    draw = np.random.default_rng(5)
    table = pd.DataFrame({name: draw.normal(size=rows) for name in ("x", "other", "far")})
    table["x"] = table["x"].abs()
    table["kind"] = draw.choice(["a", "b"], rows)
    table["price"] = 100 + 10 * table["other"] + 20 * table["x"] * draw.normal(size=rows)
    table.loc[rows - 20 :, "far"] += 30
    return table


def linear(folder: Path, *overrides: str) -> tuple[list[Member], Store]:
    """Members of a linear model of the noisy table."""
    noisy().to_csv(folder / "noisy.csv", index=False)
    cfg = composed(
        "experiment=fit", "dataset=table", f"dataset.path={folder / 'noisy.csv'}",
        "dataset.target=price", "method=linear", f"store={folder / 'runs'}", "workers=1", *overrides,
    )  # fmt: skip
    members, _ = run(cfg)
    return members, Store(folder / "runs")


def made(members: list[Member], store: Store) -> Account:
    found = account(members, store, [0.9, 0.95], "pi3nn-run …", Path("model"))
    assert found
    return found


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Member], Store]:
    return linear(tmp_path_factory.mktemp("linear"))


def test_it_is_in_the_units_of_the_target(trained: tuple[list[Member], Store]) -> None:
    (member,), store = trained
    said = made([member], store)
    (record,) = [r for r in store.rows([member.key]) if (r["set"], r["gamma"]) == ("test", 0.95)]
    std = store.result(member.key)["scalars"]["y_std"]
    judged = said.levels[-1]
    assert (judged.level, judged.n, judged.coverage) == (0.95, 50, record["picp"])
    assert judged.width == pytest.approx(std * record["mpiw"], rel=1e-5)
    assert judged.score == pytest.approx(std * record["interval_score"], rel=1e-5)
    assert said.point.rmse == pytest.approx(std * record["rmse"], rel=1e-5)
    y = member.split.train.y
    assert judged.naive_width == pytest.approx(
        np.quantile(y, 0.975) - np.quantile(y, 0.025), rel=1e-5
    )
    assert (said.learned_rows, said.test_rows) == (450, 50)
    assert said.columns == ["x", "other", "far", "kind"]


def test_the_input_that_the_error_grows_with_is_named_and_no_other(
    trained: tuple[list[Member], Store],
) -> None:
    said = made(*trained)
    assert (said.judged_on, said.judged_rows) == (OUT_OF_FOLD, 450)
    assert [of_input.name for of_input in said.inputs if of_input.told] == ["x"]
    assert said.inputs[0].error > 0.3
    # The width of a linear model does not follow: the narrowest tenth is no better than others.
    assert abs(said.inputs[0].width) < 0.5
    assert sum(group.n for group in said.by_width) == 450
    assert sum(group.n for group in said.by_prediction) == 450


def test_without_folds_test_rows_are_judged(tmp_path: Path) -> None:
    said = made(*linear(tmp_path, "calibrate=conformal", "holdout=0.2"))
    assert (said.judged_on, said.judged_rows, said.learned_rows) == (ON_TEST_ROWS, 50, 450)
    assert said.point == said.point_judged
    assert "out of fold" not in said.errors


def test_the_widest_rows_are_test_rows_with_the_values_of_their_columns(
    trained: tuple[list[Member], Store],
) -> None:
    said = made(*trained)
    widths = [row.upper - row.lower for row in said.widest]
    assert len(widths) == 10
    assert widths == sorted(widths, reverse=True)
    table = noisy()
    for row in said.widest:
        (found,) = np.flatnonzero(np.isclose(table["price"], row.y, atol=1e-4))
        values = table.drop(columns="price").iloc[found].to_dict()
        assert row.values == pytest.approx(values)


def test_the_flag_says_of_test_rows_what_pi3nn_predict_says(tmp_path: Path) -> None:
    folder, _ = own_run(tmp_path, "method=linear", "workers=1", table=noisy())
    note = run_notes.read(folder)
    assert note.account
    noisy().to_csv(tmp_path / "all.csv", index=False)
    saved = model_files.load(folder / "model")
    prediction.predict_file(saved, tmp_path / "all.csv", [0.9, 0.95], tmp_path / "out.csv")
    out = pd.read_csv(tmp_path / "out.csv").set_index("price")
    for row in note.account.widest:
        (price,) = out.index[np.isclose(out.index, row.y, atol=1e-4)]
        assert row.ood_p == pytest.approx(out.loc[price, "ood_p"])
        assert row.ood_by == out.loc[price, "ood_by"]
        assert row.lower == pytest.approx(out.loc[price, "lower_0.95"], rel=1e-5)


def test_of_few_rows_it_says_that_none_can_be_flagged(tmp_path: Path) -> None:
    folder, said = own_run(tmp_path, "method=linear", "workers=1", table=noisy(100))
    assert "No row can be flagged as unlike the training rows" in said
    assert "lowest possible: 0.011" in said  # 90 training rows
    assert "Flagged" not in said
    noisy(100).to_csv(tmp_path / "all.csv", index=False)
    saved = model_files.load(folder / "model")
    summary = prediction.predict_file(saved, tmp_path / "all.csv", [0.9], tmp_path / "out.csv")
    assert summary.lowest_p == pytest.approx(1 / 91)
    assert summary.flagged == 0


def test_bounds_of_ratings_are_ratings_and_the_page_says_so(tmp_path: Path) -> None:
    table = noisy(300)
    table["price"] = (table["price"] / 20).round().clip(3, 7)
    folder, said = own_run(tmp_path, "method=linear", "workers=1", table=table)
    assert "Bounds: put on the nearest of the 5 values" in said
    found = run_notes.read(folder).account
    assert found
    widths = [group.width for group in found.by_width]
    assert all({group.low, group.high} <= {0, 1, 2, 3, 4} for group in found.by_width)
    assert widths == sorted(widths)
    assert found.judged_coverage > found.level
    assert f"it is {found.judged_coverage:.3f}" in (folder / "report.html").read_text()


def test_levels_trained_apart_may_come_in_any_order(tmp_path: Path) -> None:
    table, trained_apart = noisy(200), ["method=qd", "method.epochs=3", "method.hidden=8"]
    folder, _ = own_run(tmp_path, *trained_apart, "levels=[0.95,0.9]", "workers=1", table=table)
    found = run_notes.read(folder).account
    assert found
    assert [of_level.level for of_level in found.levels] == [0.9, 0.95]
    for row in found.widest:  # of the highest level
        assert row.upper - row.lower >= found.levels[0].width


def test_several_models_and_failures_have_no_account(tmp_path: Path) -> None:
    members, store = linear(tmp_path, "seeds=[1,2]")
    assert account(members, store, [0.9, 0.95], "", None) is None
    result = store.result(members[0].key)
    result["member"] |= {"status": "failed", "reason": "diverged"}
    arrays = store.predictions(members[0].key)
    store.replace(members[0].key, result, {n: v for n, v in arrays.items() if "@" not in n})
    assert account(members[:1], store, [0.9, 0.95], "", None) is None


def test_it_comes_back_from_json_as_it_was(trained: tuple[list[Member], Store]) -> None:
    said = made(*trained)
    assert Account.from_plain(asdict(said)) == said


def test_inputs_become_the_columns_they_were_made_of() -> None:
    schema = Schema(
        (
            InputColumn("n", "number"),
            InputColumn("yes", "boolean"),
            InputColumn("kind", "category", ("a", "b")),
        ),
        "y",
    )
    assert decoded(schema, np.array([1.5, 1, 0, 1])) == {"n": 1.5, "yes": True, "kind": "b"}
    # Filled in, where values were missing.
    assert decoded(schema, np.array([2, 0.4, 0.3, 0.7])) == {"n": 2.0, "yes": 0.4, "kind": None}
