"""Tables are read in blocks, the same from every format; a bad file is one clear sentence."""

from __future__ import annotations

import bz2
import gzip
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pi3nn.data.own import reading
from pi3nn.errors import UserError
from tests.support.tables import homes, zipped

TEXT = "a,b,price\n" + "".join(f"{i},{i * i % 7},{i}\n" for i in range(20))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", TEXT.encode()),
        ("t.csv", b"\xef\xbb\xbf" + TEXT.encode()),
        ("t.tsv", TEXT.replace(",", "\t").encode()),
        ("t.csv.gz", gzip.compress(TEXT.encode())),
        ("t.csv.bz2", bz2.compress(TEXT.encode())),
        ("t.zip", zipped({"folder/t.csv": TEXT, "remarks.txt": TEXT})),
    ],
)
def test_every_packing_gives_the_same_columns(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert reading.columns(path) == ["a", "b", "price"]
    table = reading.text_table(path, ["price", "a"])
    assert table.column_names == ["price", "a"]
    assert table["a"].to_pylist() == [str(i) for i in range(20)]


def test_a_large_file_comes_in_blocks_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BLOCK", 1000)
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "".join(f"{i}\n" for i in range(5000)))
    batches = list(reading.chunks(path, {"a": pa.int64()}))
    assert len(batches) > 10
    assert pa.Table.from_batches(batches)["a"].to_pylist() == list(range(5000))


LONG = "a\n" + "".join(f"{i * 7919 % 100003}\n" for i in range(300_000))


@pytest.mark.parametrize("pack", [gzip, bz2])
def test_a_file_of_several_parts_is_read_whole(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / f"t.csv.{'gz' if pack is gzip else 'bz2'}"
    path.write_bytes(pack.compress(b"a\n1\n") + pack.compress(b"2\n"))
    assert reading.text_table(path, ["a"])["a"].to_pylist() == ["1", "2"]


@pytest.mark.parametrize("pack", [gzip, bz2])
def test_damage_far_behind_the_header_is_one_sentence(tmp_path: Path, pack: Any) -> None:
    path, whole = tmp_path / "t.csv", pack.compress(LONG.encode())
    path = path.with_suffix(".csv.gz" if pack is gzip else ".csv.bz2")
    for content in (whole[: len(whole) * 3 // 4], whole[:-20] + bytes(20)):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"t\.csv\.\w+ is damaged or cut off: [^\n]+$"):
            reading.text_table(path, ["a"])


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.bz2", "t.zip"])
def test_arrow_reads_ahead_in_files_that_are_its_own(tmp_path: Path, name: str) -> None:
    """It lets go of a file of Python's a moment too late, when Python may have ended."""
    text = TEXT.encode()
    packed = {
        ".gz": gzip.compress(text),
        ".bz2": bz2.compress(text),
        ".zip": zipped({"t.csv": TEXT}),
    }
    (tmp_path / name).write_bytes(packed.get(Path(name).suffix, text))
    with reading._arrow_bytes(tmp_path / name) as (file, _):
        assert isinstance(file, pa.NativeFile)
        assert not isinstance(file, pa.PythonFile)
        assert file.read() == text


def test_texts_are_trimmed_and_null_where_nothing_is_left() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [" x ", "", "  ", "NaN", "nat", None, "na"]})
    assert reading.trimmed(batch)["a"].to_pylist() == ["x", None, None, None, None, None, "na"]


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        ([[1, 2], None], ["[1, 2]", None]),
        ([{"x": 1}, {"x": None}], ["{'x': 1}", "{'x': None}"]),
        ([b"\xff", b"ab"], [r"b'\xff'", "b'ab'"]),
    ],
)
def test_cells_of_parquet_that_are_no_texts_are_read_as_python_writes_them(
    tmp_path: Path, cells: list[Any], texts: list[str | None]
) -> None:
    """A column that a model does not need must not keep it from predicting."""
    pq.write_table(pa.table({"a": [1, 2], "odd": cells}), tmp_path / "t.parquet")
    table = reading.text_table(tmp_path / "t.parquet", ["a", "odd"])
    assert table.to_pydict() == {"a": ["1", "2"], "odd": texts}


def test_cells_of_parquet_that_are_no_numbers_are_one_sentence(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [[1], [2]]}), tmp_path / "t.parquet")
    with pytest.raises(UserError, match=r"t\.parquet, column 'a': [^\n]*list"):
        list(reading.chunks(tmp_path / "t.parquet", {"a": pa.float64()}))


def test_damage_inside_a_parquet_file_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": list(range(10_000))}), path)
    content = bytearray(path.read_bytes())
    content[10:30] = b"\xff" * 20
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"t\.parquet is damaged or cut off: [^\n]+$"):
        reading.text_table(path, ["a"])


def workbook(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Two columns and two rows, the text of their sheet changed."""
    pd.DataFrame({"a": [1, 2], "b": [3, 4]}).to_excel(path, index=False, engine="openpyxl")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    path.write_bytes(zipped({**members, sheet: change(members[sheet])}))


@pytest.mark.parametrize("cell", [b"A1", b"B3"])
def test_a_sheet_that_is_cut_off_in_a_whole_archive_is_one_sentence(
    tmp_path: Path, cell: bytes
) -> None:
    workbook(tmp_path / "t.xlsx", lambda sheet: sheet[: sheet.index(b'r="%s"' % cell)])
    with pytest.raises(UserError, match=r"t\.xlsx is not a whole Excel workbook$"):
        reading.text_table(tmp_path / "t.xlsx", ["a", "b"])


def test_cells_that_a_short_row_of_a_sheet_leaves_out_are_missing(tmp_path: Path) -> None:
    left_out = rb'<dimension [^>]*>|<c r="B3".*?</c>'
    workbook(tmp_path / "t.xlsx", lambda sheet: re.sub(left_out, b"", sheet))
    table = reading.text_table(tmp_path / "t.xlsx", ["a", "b"])
    assert table.to_pydict() == {"a": ["1", "2"], "b": ["3", None]}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("my.csv", TEXT.encode("utf-16"), "not UTF-8"),
        ("my.csv", TEXT.replace("\n3", "\né").encode("latin-1"), "UTF-8"),
        ("my.csv", b"\x00\x01\x02", "not UTF-8"),
        ("my.parquet", b"PAR1 but not really", "not a whole parquet file"),
        ("my.xlsx", b"PK but not really", "not a whole Excel workbook"),
        ("my.xls", b"old", "save it as .xlsx"),
        ("my.csv.gz", b"not gzip", "damaged or cut off"),
        ("my.csv.gz", gzip.compress(TEXT.encode())[:-10], "damaged or cut off"),
        ("my.zip", zipped({"a.csv": TEXT, "b.csv": TEXT}), "2 .csv files"),
        ("my.zip", zipped({"../a.csv": TEXT}), "leads outside"),
        ("my.zip", zipped({"a.csv": TEXT})[:-30], "damaged or cut off"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_refused(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=words) as caught:
        reading.text_table(tmp_path / name, reading.columns(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_missing_column_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"can't read .*nowhere\.csv: No such file"):
        reading.columns(tmp_path / "nowhere.csv")
    (tmp_path / "t.csv").write_text(TEXT)
    with pytest.raises(UserError, match="no column named c; it has a, b, price"):
        reading.text_table(tmp_path / "t.csv", ["a", "c"])


def test_excel_without_openpyxl_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes().to_excel(tmp_path / "t.xlsx", index=False)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(UserError, match=r"pip install 'pi3nn\[excel\]'"):
        reading.columns(tmp_path / "t.xlsx")
