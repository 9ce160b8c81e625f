"""Reading tables in chunks, with one clear sentence for each way a file can be wrong.

CSV and TSV (plain, ``.gz``, ``.bz2``, or the one table in a ``.zip``), parquet, and the first sheet
of an Excel workbook. Nothing is unpacked to disk, and of all but ``.zip`` and Excel never more than a
few blocks are in memory.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import itertools
import re
import shutil
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from pi3nn.data.own import bounds
from pi3nn.errors import UserError, first_line
from pi3nn.later import arrow_compute as pc
from pi3nn.later import arrow_csv
from pi3nn.later import arrow_parquet as pq
from pi3nn.later import pyarrow as pa

_CODECS = {".gz": "gzip", ".bz2": "bz2"}
BLOCK = 1 << 20  # bytes of text parsed at a time; Arrow reads some thirty blocks ahead


def chunks(
    path: Path, types: Mapping[str, Any], same: Callable[[str], str] = str
) -> Iterator[pa.RecordBatch]:
    """Read some columns of a table, block by block.

    Parameters
    ----------
    path
        A CSV or TSV, compressed or not, a parquet file or an Excel workbook.
    types
        Arrow type of each column asked for, by name; missing values become nulls.
    same
        Two names are one column when this gives the same for both.

    Raises
    ------
    UserError
        For a file that is missing, empty, damaged, not UTF-8, or lacks a column; for a row with
        too many or too few values, and a value of the wrong type.
    """
    names = columns(path)
    in_file = _match(path, names, types, same)
    batches = _parquet if _is_parquet(path) else _excel if _is_excel(path) else _csv
    try:
        for batch in batches(path, in_file, types):
            yield _of_types(path, batch, types)
    except (ValueError, NotImplementedError) as error:  # Arrow's errors are one or the other
        raise UserError(_sentence(path, str(error), names)) from error


def text_table(path: Path, names: Sequence[str]) -> pa.Table:
    """These columns of a whole file, all as trimmed texts, null where a value is missing."""
    types = text_types(names)
    return pa.Table.from_batches(map(trimmed, chunks(path, types)), pa.schema(types))


def text_types(names: Sequence[str]) -> dict[str, pa.DataType]:
    """The types that ask `chunks` for texts."""
    return dict.fromkeys(names, pa.string())


def trimmed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of texts without spaces around them, null where that is empty, "nan" or "nat"."""
    columns = []
    for column in batch.columns:
        texts = pc.utf8_trim_whitespace(column)
        shortest = pc.min(pc.binary_length(texts)).as_py() or 0
        if shortest <= len("nan"):
            missing = pc.is_in(pc.utf8_lower(texts), pa.array(["", "nan", "nat"]))
            texts = pc.if_else(missing, pa.scalar(None, pa.string()), texts)
        columns.append(texts)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def columns(path: Path) -> list[str]:
    """Names of a table's columns; each may be there only once."""
    bounds.check_file(path)
    if _is_parquet(path):
        try:
            with readable(path), path.open("rb") as file:
                names = list(pq.read_schema(file).names)
        except ValueError as error:
            raise UserError(f"{path} is not a whole parquet file") from error
    elif _is_excel(path):
        names = [str(name) for name in _sheet(path, rows=0)]
    else:
        names = _header(path)
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise UserError(f"{path} has more than one column named '{twice[0]}': rename or drop one")
    return names


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn the system's refusal of a file into one sentence that names it."""
    try:
        yield
    except OSError as error:  # without a number where bz2 reports damaged data
        raise UserError(f"can't read {path}: {error.strerror or error}") from error


@contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    """As `readable`, while Arrow reads: it reports damage as an error of the system without a number."""
    with readable(path):
        try:
            yield
        except OSError as error:
            if error.errno is not None:
                raise
            raise UserError(f"{path} is damaged or cut off: {first_line(error)}") from error


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to read it unpacked: plain, ``.gz``, ``.bz2``, or the one table in a ``.zip``."""
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    with readable(path):
        try:
            if path.suffix == ".zip":
                with zipfile.ZipFile(path) as archive:
                    bounds.check_archive(path, archive)
                    with archive.open(the_table_in(archive)) as file:
                        yield file
            else:
                with openers.get(path.suffix, open)(path, "rb") as file:
                    yield file
        except (EOFError, gzip.BadGzipFile, zlib.error, zipfile.BadZipFile, RuntimeError) as error:
            raise UserError(f"{path} is damaged or cut off: {error}") from error


def the_table_in(archive: zipfile.ZipFile) -> str:
    """Name of the only CSV in an archive; an archive that reaches outside itself is refused."""
    for name in archive.namelist():
        parts = PurePosixPath(name.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or re.match(r"[A-Za-z]:", name):
            raise UserError(f"{archive.filename} is refused: its member '{name}' leads outside it")
    tables = [name for name in archive.namelist() if name.lower().endswith(".csv")]
    if len(tables) != 1:
        raise UserError(f"{archive.filename} has {len(tables)} .csv files in it: needs exactly one")
    return tables[0]


def _is_parquet(path: Path) -> bool:
    return path.suffix in (".parquet", ".pq")


def _is_excel(path: Path) -> bool:
    if path.suffix == ".xls":
        raise UserError(f"{path} is an old Excel file: save it as .xlsx or .csv")
    return path.suffix in (".xlsx", ".xlsm")


def _delimiter(path: Path) -> str:
    return "\t" if {".tsv", ".tab"} & set(path.suffixes) else ","


def _header(path: Path) -> list[str]:
    with open_bytes(path) as file:
        line = bounds.first_line(path, file)
    try:
        names = next(csv.reader([line.decode("utf-8-sig")], delimiter=_delimiter(path)), [])
        text = b"\0" not in line
    except (UnicodeDecodeError, csv.Error):
        text = False
    if not text:
        raise UserError(f"{path} is not UTF-8 text: save it as a UTF-8 CSV")
    if not names:
        raise UserError(f"{path} is empty: needs a header and rows")
    if len(names) == 1 and (separator := re.search("[;\t]", names[0])):
        mark = "tabs: name it .tsv" if separator[0] == "\t" else "';': save it with commas"
        raise UserError(f"{path} is separated by {mark}")
    return names


def _match(
    path: Path, names: list[str], types: Mapping[str, Any], same: Callable[[str], str]
) -> list[str]:
    """Names in the file of the columns asked for, in the order asked."""
    by_meaning = {same(name): name for name in names}
    missing = [name for name in types if same(name) not in by_meaning]
    if missing:
        raise UserError(
            f"{path} has no column named {', '.join(missing)}; it has {', '.join(names[:30])}"
        )
    return [by_meaning[same(name)] for name in types]


def _of_types(path: Path, batch: pa.RecordBatch, types: Mapping[str, Any]) -> pa.RecordBatch:
    """The batch with these names and types.

    Lists, structs and bytes, of which Arrow makes no texts, are written as Python does: who reads every
    column may need only others.
    """
    columns = []
    for column, (name, wanted) in zip(batch.columns, types.items(), strict=True):
        try:
            made = column.cast(wanted)
        except (ValueError, NotImplementedError) as error:
            if wanted != pa.string():
                raise UserError(f"{path}, column '{name}': {error}") from error
            texts = [str(cell.as_py()) if cell.is_valid else None for cell in column]
            made = pa.array(texts, wanted)
        columns.append(made)
    return pa.RecordBatch.from_arrays(columns, names=list(types))


def _parquet(path: Path, names: list[str], _: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    size = path.stat().st_size
    with _undamaged(path), pq.ParquetFile(path) as file:
        bounds.check_cells(path, file.metadata.num_rows * len(names))
        for batch in bounds.bounded(path, file.iter_batches(columns=names), lambda: size):
            yield batch.select(names)


def _csv(path: Path, names: list[str], types: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    with (
        _arrow_bytes(path) as (file, packed),
        arrow_csv.open_csv(
            file,
            # One thread: only then do errors carry the number of the line.
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=BLOCK),
            parse_options=arrow_csv.ParseOptions(delimiter=_delimiter(path)),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=names,
                column_types=dict(zip(names, types.values(), strict=True)),
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        ) as reader,
    ):
        yield from bounds.bounded(path, reader, packed)


@contextmanager
def _arrow_bytes(path: Path) -> Iterator[tuple[pa.NativeFile, Callable[[], int]]]:
    """As `open_bytes`, with nothing of Python's in the file; and how much was read of it, packed.

    Arrow reads ahead in a thread of its own, and lets go of the file a moment after its end. Were it
    a file of Python's, and should Python end in that moment, the thread would abort the process.
    """
    if path.suffix == ".zip":
        with open_bytes(path) as file, pa.BufferOutputStream() as unpacked:
            shutil.copyfileobj(file, unpacked, BLOCK)
            whole = unpacked.getvalue()
        yield pa.BufferReader(whole), lambda: len(whole)  # bounded before it was unpacked
        return
    with _undamaged(path):
        packed = pa.OSFile(str(path), "rb")
        codec = _CODECS.get(path.suffix)
        yield pa.CompressedInputStream(packed, codec) if codec else packed, packed.tell


def _excel(path: Path, names: list[str], _: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    """The whole sheet as one batch of texts: cells of a column need not be of one type."""
    sheet = _sheet(path)
    texts = [[None if cell is None else str(cell) for cell in sheet[name]] for name in names]
    yield pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in texts], names)


def _sheet(path: Path, rows: int | None = None) -> dict[str, list[Any]]:
    """Cells of the first sheet by the names in its first row; of its first `rows` rows only."""
    try:
        import openpyxl
    except ImportError as error:
        raise UserError(
            f"reading {path} needs openpyxl: pip install 'pi3nn[excel]', or save it as .csv"
        ) from error
    with readable(path):
        try:
            with zipfile.ZipFile(path) as archive:
                bounds.check_archive(path, archive)
            with closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book:
                return _cells(path, book.worksheets[0].iter_rows(values_only=True), rows)
        except (OSError, UserError):
            raise
        except Exception as error:  # what a damaged workbook raises depends on where it is damaged
            raise UserError(f"{path} is not a whole Excel workbook") from error


def _cells(path: Path, lines: Iterator[tuple[Any, ...]], rows: int | None) -> dict[str, list[Any]]:
    """Cells by the names in the first line; those that a short line leaves out are missing."""
    first = next(lines, ())
    names = [str(name) for name in first if name is not None]
    if len(names) < len(first) or not names:
        raise UserError(f"{path}: the first row of the first sheet must name every column")
    read = [line for line in itertools.islice(lines, rows) if any(c is not None for c in line)]
    return {
        name: [line[i] if i < len(line) else None for line in read] for i, name in enumerate(names)
    }


def _sentence(path: Path, text: str, names: list[str]) -> str:
    """Arrow's message in words that say where to look."""
    line = re.search(r"Row #(\d+)", text)
    where = f"{path}, line {line[1]}" if line else str(path)
    if columns := re.search(r"Expected (\d+) columns, got (\d+)", text):
        return f"{where}: {columns[2]} values where the header names {columns[1]} columns"
    if "invalid UTF8" in text:
        return f"{where}: not UTF-8 text: save it as a UTF-8 CSV"
    if "out of sync" in text:
        return f"{where}: a value goes on in the next line: look for an open quote"
    if "straddling" in text:
        return f"{path}: a line is longer than a megabyte: look for an open quote, or a missing line break"
    if value := re.search(r"column #(\d+).*invalid value '(.*)'", text, re.DOTALL):
        return f"{where}, column {names[int(value[1])]}: '{value[2]}' is not a number"
    return f"{where}: {text}"
