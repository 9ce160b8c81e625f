"""Packages that take long to load, loaded when something of them is first used.

pandas and pyarrow take a third of a second, and most commands import every source of data without
reading any. The engine has PyTorch in the same way (`pi3nn.engine.later`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["Later", "arrow_compute", "arrow_csv", "arrow_parquet", "pandas", "pyarrow"]


class Later:
    """Stands for a module: what is asked of it once is then found like any attribute."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import pandas
    import pyarrow
    import pyarrow.compute as arrow_compute
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as arrow_parquet
else:
    pandas, pyarrow = Later("pandas"), Later("pyarrow")
    arrow_compute, arrow_csv = Later("pyarrow.compute"), Later("pyarrow.csv")
    arrow_parquet = Later("pyarrow.parquet")
