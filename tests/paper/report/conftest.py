from __future__ import annotations

from pathlib import Path

import pytest

from pi3nn.paper import report
from tests.support.paper_records import TABLES, export


@pytest.fixture(scope="package")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on made-up records."""
    folder = export(tmp_path_factory.mktemp("paper"), *TABLES)
    report.write(folder)
    return folder
