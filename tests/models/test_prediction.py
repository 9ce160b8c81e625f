"""A saved model on a table of new rows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from pi3nn.errors import UserError
from pi3nn.models import model_files, prediction
from pi3nn.models.model_files import SavedModel
from tests.support.models import trained


@pytest.fixture
def rows(tmp_path: Path) -> pd.DataFrame:
    members, _ = trained(tmp_path)
    table = members[0].dataset.table().head(20)
    assert isinstance(table, pd.DataFrame)
    return table


@pytest.fixture
def saved(tmp_path: Path, rows: pd.DataFrame) -> SavedModel:
    return model_files.load(tmp_path / "model")


def test_slices_of_a_table_give_what_the_whole_gives(
    tmp_path: Path, rows: pd.DataFrame, saved: SavedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "whole.csv", tmp_path / "slices.csv"
    summary = prediction.predict_file(saved, tmp_path / "new.csv", [0.8], out[0], None)
    assert summary.rows == 20
    monkeypatch.setattr(prediction, "ROWS", 7)
    assert prediction.predict_file(saved, tmp_path / "new.csv", [0.8], out[1], None) == summary
    assert out[0].read_bytes() == out[1].read_bytes()
    assert list(pd.read_csv(out[0])) == [*rows, *prediction.new_columns([0.8])]


def test_every_row_is_flagged_below_a_threshold_above_all_scores(
    tmp_path: Path, rows: pd.DataFrame, saved: SavedModel
) -> None:
    rows.to_csv(tmp_path / "new.csv", index=False)
    summary = prediction.predict_file(saved, tmp_path / "new.csv", [0.8], tmp_path / "o.csv", 1.1)
    assert (summary.threshold, summary.flagged) == (1.1, 20)


@pytest.mark.parametrize("what", ["lacks", "has a column 'ood'", "has no rows"])
def test_a_table_unlike_the_one_trained_on_is_refused_and_nothing_written(
    tmp_path: Path, rows: pd.DataFrame, saved: SavedModel, what: str
) -> None:
    lacking = rows.drop(columns=saved.schema.columns[0].name)
    tables = {"lacks": lacking, "has a column 'ood'": rows.assign(ood=1), "has no rows": rows[:0]}
    tables[what].to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(UserError, match=what):
        prediction.predict_file(saved, tmp_path / "new.csv", [0.8], tmp_path / "out.csv", None)
    assert not (tmp_path / "out.csv").exists()
