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
    summary = prediction.predict_file(saved, tmp_path / "new.csv", [0.8], out[0])
    assert summary.rows == 20
    monkeypatch.setattr(prediction, "ROWS", 7)
    assert prediction.predict_file(saved, tmp_path / "new.csv", [0.8], out[1]) == summary
    assert out[0].read_bytes() == out[1].read_bytes()
    assert list(pd.read_csv(out[0])) == [*rows, *prediction.new_columns([0.8])]


@pytest.mark.parametrize(("threshold", "flagged"), [(0.0, 0), (1.1, 20)])
def test_rows_are_flagged_where_ood_p_is_below_the_threshold(
    tmp_path: Path, rows: pd.DataFrame, saved: SavedModel, threshold: float, flagged: int
) -> None:
    rows.to_csv(tmp_path / "new.csv", index=False)
    files = tmp_path / "new.csv", tmp_path / "o.csv"
    summary = prediction.predict_file(saved, files[0], [0.8], files[1], threshold)
    assert summary.flagged == flagged


@pytest.mark.parametrize("what", ["lacks", "has a column 'ood'", "has no rows"])
def test_a_table_unlike_the_one_trained_on_is_refused_and_nothing_written(
    tmp_path: Path, rows: pd.DataFrame, saved: SavedModel, what: str
) -> None:
    lacking = rows.drop(columns=saved.schema.columns[0].name)
    tables = {"lacks": lacking, "has a column 'ood'": rows.assign(ood=1), "has no rows": rows[:0]}
    tables[what].to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(UserError, match=what):
        prediction.predict_file(saved, tmp_path / "new.csv", [0.8], tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_a_text_that_a_spreadsheet_would_run_is_written_as_text(
    tmp_path: Path, rows: pd.DataFrame, saved: SavedModel
) -> None:
    remarks = ["=1+1", "-3.5", "fine", *[""] * 17]
    rows.assign(remark=remarks).to_csv(tmp_path / "new.csv", index=False)
    prediction.predict_file(saved, tmp_path / "new.csv", [0.8], tmp_path / "out.csv", 0.01)
    written = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    assert written["remark"].tolist() == ["'=1+1", *remarks[1:]]
    assert (
        written.iloc[:, :3]
        .astype(float)
        .equals(rows.iloc[:, :3].astype(float).reset_index(drop=True))
    )
