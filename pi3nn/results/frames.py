"""Tables as files, read and written as what their name says they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from pi3nn import atomic
from pi3nn.errors import UserError
from pi3nn.results.tables import inert

MOST_EXCEL_ROWS = 1_048_576 - 1
"""Rows of a sheet, but for its header."""

_WRITERS: dict[str, Callable[[pd.DataFrame, Any], Any]] = {
    ".csv": lambda table, file: inert(table).to_csv(file, index=False),
    ".parquet": lambda table, file: _of_one_type(table).to_parquet(file, index=False),
    ".feather": lambda table, file: _of_one_type(table).to_feather(file),
    ".json": lambda table, file: table.to_json(file, orient="records", double_precision=15),
    ".xlsx": lambda table, file: (
        inert(table).map(_in_a_cell).to_excel(file, index=False, engine="openpyxl")
    ),
}
_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": pd.read_csv,
    ".tsv": lambda path: pd.read_csv(path, sep="\t"),
    ".parquet": pd.read_parquet,
    ".feather": pd.read_feather,
    ".json": pd.read_json,
    ".xlsx": pd.read_excel,
}


def check_writable(path: Path) -> None:
    """Refuse a name that says nothing we can write: before anything is computed."""
    if path.suffix not in _WRITERS:
        raise UserError(f"{path}: its name must end in {_listed(list(_WRITERS))}")


def write(table: pd.DataFrame, path: Path) -> None:
    """Write a table, whole or not at all, as the ending of `path` says: CSV, parquet, Feather, JSON
    (a list of rows) or Excel."""
    check_writable(path)
    if path.suffix == ".xlsx" and len(table) > MOST_EXCEL_ROWS:
        raise UserError(f"{path}: {len(table)} rows do not fit into a sheet: give .csv or .parquet")
    try:
        with atomic.replacing(path) as temporary, temporary.open("wb") as file:
            _WRITERS[path.suffix](table.reset_index(drop=True), file)
    except OSError as error:
        raise UserError(f"can't write {path}: {error.strerror or error}") from error
    except ImportError as error:
        raise UserError(_no_excel(path)) from error


def read(path: Path) -> pd.DataFrame:
    """Read a table of any of these kinds, or TSV.

    Raises
    ------
    UserError
        When the file is not there, or not what its name says.
    """
    if path.suffix not in _READERS:
        raise UserError(f"{path}: its name must end in {_listed(list(_READERS))}")
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise UserError(f"can't read {path}: it is no file")
    try:
        return _READERS[path.suffix](path)
    except ImportError as error:
        raise UserError(_no_excel(path)) from error
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror or error}") from error
    except Exception as error:  # each library has its own for a file that is not what it says
        kind = path.suffix.removeprefix(".")
        raise UserError(f"{path} can't be read as {kind}: {_first_line(error)}") from error


def _of_one_type(table: pd.DataFrame) -> pd.DataFrame:
    """A hyper-parameter may be a number here and a list or word there; a column of parquet or Feather
    has one type."""
    mixed = [
        name
        for name in table
        if table[name].dtype == object and table[name].dropna().map(type).nunique() > 1
    ]
    return table.astype(dict.fromkeys(mixed, str))


def _in_a_cell(value: Any) -> Any:
    """A cell of Excel holds no list."""
    return str(value) if isinstance(value, list | dict) else value


def _listed(endings: list[str]) -> str:
    return f"{', '.join(endings[:-1])} or {endings[-1]}"


def _no_excel(path: Path) -> str:
    return f"{path}: Excel files need openpyxl: pip install 'pi3nn[excel]', or give .csv"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
