"""What the README and ``results/paper`` show is what the committed records say."""

from __future__ import annotations

import csv
import shutil
from collections import Counter
from pathlib import Path

import pytest

from pi3nn.paper import paper_methods, report, tasks, verdicts
from pi3nn.paper.report import cells, source
from pi3nn.paper.run_verdicts import beside_paper
from tests.conftest import REPOSITORY

RESULTS = REPOSITORY / "results" / "paper"


def test_the_readme_shows_the_means_of_table_1() -> None:
    table = (RESULTS / "tables" / "paper" / "table1.md").read_text(encoding="utf-8").splitlines()
    head = next(line for line in table if line.startswith("|"))
    means = [line for line in table if line.split("|")[2:3] == [" mean           "]]
    assert len(means) == 5
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    for line in (head, *means):
        first, _, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert f"| {first} | {' | '.join(cells)} |" in readme


def test_the_readme_counts_the_verdicts_of_the_released_runs() -> None:
    with open(RESULTS / "verdicts.csv", newline="", encoding="utf-8") as file:
        cells = [row for row in csv.DictReader(file) if row["protocol"] == "released"]
    found = Counter(cell["verdict"] for cell in cells)
    run = len(cells) - found[verdicts.NOT_RUN]
    readme = " ".join((REPOSITORY / "README.md").read_text(encoding="utf-8").split())
    assert f"of {run} printed numbers that were run, {found[verdicts.EQUAL]} are equal" in readme
    assert f"equal as printed and {found[verdicts.WITHIN]} within sampling error" in readme
    own = [
        c for c in cells if (c["table"], c["method"], c["statistic"]) == ("table1", "pi3nn", "mean")
    ]
    assert len(own) == 9
    assert {cell["verdict"] for cell in own} <= {verdicts.EQUAL, verdicts.WITHIN}


@pytest.mark.parametrize("protocol", tasks.PROTOCOLS)
def test_the_screen_says_of_the_committed_runs_what_the_report_says(protocol: str) -> None:
    with open(RESULTS / "verdicts.csv", newline="", encoding="utf-8") as file:
        report = {
            (row["table"], row["method"], row["column"], row["statistic"]): row
            for row in csv.DictReader(file)
            if row["protocol"] == protocol
        }
    records = source.read(RESULTS, protocol)
    compared = 0
    for (method, dataset), entry in records.uci.items():
        column = paper_methods.column(method)
        for name, cell in beside_paper(entry, ()).cells.items():
            table, statistic = ("mpiw", "mpiw") if name == "width" else ("table1", name)
            if table == "table1" and records.entry(column, dataset) is not entry:
                continue  # the report takes SQR's whole grid where it was run
            if table == "mpiw" and method != column:
                continue  # and the setting of the text for its widths
            row = report[table, column, dataset, statistic]
            assert (cell.text, cell.verdict) == (row["printed"], row["verdict"])
            assert row["reason"] in cell.explanation
            compared += 1
    assert compared == sum(table in ("table1", "mpiw") for table, *_ in report) - sum(
        key[3] == "picp" for key in report
    )


@pytest.mark.parametrize("protocol", tasks.PROTOCOLS)
def test_the_tables_of_the_experiments_have_the_verdicts_of_the_report(protocol: str) -> None:
    records = source.read(RESULTS, protocol)
    report = {(c.table, c.method, c.column, c.statistic): c for c in cells.judged(records)}
    compared = 0
    for table, experiment in source.EXPERIMENTS.items():
        numbers = source.lowest(records.ood[experiment].numbers)
        for row in numbers[numbers["paper"] != ""].to_dict("records"):
            cell = report[table, row["method"], row["set"], "mean"]
            assert row["verdict"] == cell.verdict
            assert row["standing"] == cell.standing
            assert row["confidence_mean"] == pytest.approx(cell.ours)
            compared += 1
    assert compared == sum(table in source.EXPERIMENTS for table, *_ in report) / 2


@pytest.mark.slow
def test_the_committed_tables_are_made_of_the_committed_records(tmp_path: Path) -> None:
    shutil.copytree(RESULTS / "records", tmp_path / "records")
    report.write(tmp_path)
    committed = [
        *(RESULTS / "tables").rglob("*.*"),
        RESULTS / "verdicts.csv",
        RESULTS / "summary.md",
    ]
    assert len(committed) > 20
    for file in committed:
        made = tmp_path / file.relative_to(RESULTS)
        assert made.read_bytes() == file.read_bytes(), f"{file}: run pi3nn-report paper"
