"""A table is written as what its name says, or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from pi3nn.errors import UserError
from pi3nn.results import frames

TABLE = pd.DataFrame({"a": [1 / 3, None, -2.5], "b": ["x", "=1+1", "é"], "c": [1, 2, 3]})
FIRST_BYTES = {
    ".csv": b"a,b,c\n",
    ".parquet": b"PAR1",
    ".feather": b"ARROW1",
    ".json": b'[{"a":0.333',
    ".xlsx": b"PK\x03\x04",
}


@pytest.mark.parametrize("ending", FIRST_BYTES)
def test_every_kind_is_itself_and_gives_back_what_was_written(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t{ending}"
    frames.write(TABLE.set_index(pd.Index([7, 8, 9])), path)
    assert path.read_bytes().startswith(FIRST_BYTES[ending])
    back = frames.read(path)
    if ending in (".csv", ".xlsx"):  # what a spreadsheet would run is written as text
        assert back["b"].tolist() == ["x", "'=1+1", "é"]
        back["b"] = TABLE["b"]
    pd.testing.assert_frame_equal(back, TABLE, check_exact=False)


def test_mixed_values_are_text_where_a_column_has_one_type(tmp_path: Path) -> None:
    table = pd.DataFrame({"hidden": [50, "small"], "widths": [[1, 2], [3]]})
    for ending in (".parquet", ".feather"):
        frames.write(table, tmp_path / f"a{ending}")
        assert frames.read(tmp_path / f"a{ending}")["hidden"].tolist() == ["50", "small"]
    frames.write(table, tmp_path / "a.xlsx")
    assert frames.read(tmp_path / "a.xlsx")["widths"].tolist() == ["[1, 2]", "[3]"]


@pytest.mark.parametrize("name", ["t.txt", "t", "t.csv.gz", "t.xls"])
def test_another_name_is_refused_and_nothing_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"must end in \.csv, \.parquet"):
        frames.write(TABLE, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't write"):
        frames.write(TABLE, tmp_path / "gone" / "t.csv")


def test_without_openpyxl_excel_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ["openpyxl", *(name for name in sys.modules if name.startswith("openpyxl."))]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=r"pi3nn\[excel\]"):
        frames.write(TABLE, tmp_path / "t.xlsx")
    assert not list(tmp_path.iterdir())


def test_more_rows_than_a_sheet_has_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "MOST_EXCEL_ROWS", 2)
    with pytest.raises(UserError, match="3 rows do not fit"):
        frames.write(TABLE, tmp_path / "t.xlsx")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gone.csv", None, "can't read"),
        ("t.parquet", b"a,b\n1,2\n", "can't be read as parquet"),
        ("t.csv", b"", "can't be read as csv"),
        ("t.json", b"{", "can't be read as json"),
        ("t.txt", b"a\n1\n", "must end in"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_one_sentence(
    tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=words) as caught:
        frames.read(tmp_path / name)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_refused_and_not_waited_for(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "rows.csv")
    with pytest.raises(UserError, match="it is no file"):
        frames.read(tmp_path / "rows.csv")
