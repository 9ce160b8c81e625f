"""All files of the report, from made-up records."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from pi3nn.paper import published, report
from tests.support.paper_records import export, runs


def test_every_table_and_figure_is_written_in_every_format(made: Path) -> None:
    for protocol in ("paper", "released"):
        for name in ("table1", "mpiw", "table2", "table3"):
            for ending in ("csv", "md", "tex"):
                assert (made / "tables" / protocol / f"{name}.{ending}").stat().st_size > 200
        for name in ("robustness", "coverage_width"):
            for ending in ("png", "pdf"):
                assert (made / "figures" / protocol / f"{name}.{ending}").stat().st_size > 5000
    assert (made / "figures" / "released" / "flight.png").is_file()


def test_counts_add_up_to_all_printed_cells(made: Path) -> None:
    lines = (made / "summary.md").read_text().splitlines()
    totals = [line.split("|")[2:-1] for line in lines if line.startswith("| all ")]
    assert [sum(map(int, total)) for total in totals] == [len(published.cells())] * 2


def test_a_quick_budget_is_marked_everywhere(tmp_path: Path) -> None:
    export(tmp_path, runs("boston", "pi3nn", "paper"), budget="quick")
    report.write(tmp_path)
    assert "QUICK BUDGET" in (tmp_path / "report.html").read_text().partition("<h2")[0]
    assert "QUICK BUDGET" in (tmp_path / "summary.md").read_text()
    assert set(pd.read_csv(tmp_path / "verdicts.csv")["budget"]) == {"quick"}
    for path in (tmp_path / "tables" / "paper").iterdir():
        assert re.search("quick", path.read_text(), re.IGNORECASE), path
