"""What a report is made from."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pi3nn.paper.report import source
from pi3nn.paper.tasks import PROTOCOLS
from tests.support.paper_records import export, ranks, runs


def test_only_runs_whose_records_are_there_are_counted(tmp_path: Path) -> None:
    export(tmp_path, runs("boston", "pi3nn", "paper"), runs("wine", "pi3nn", "paper"))
    (tmp_path / "records" / "paper" / "uci-wine-pi3nn.csv.gz").unlink()
    assert list(source.read(tmp_path, "paper").provenance["shards"]) == ["uci-boston-pi3nn"]


def test_each_protocol_averages_over_its_unit() -> None:
    assert {name: source.unit(name) for name in PROTOCOLS} == {
        "paper": "scenario",
        "released": "run",
    }


def test_aurocs_are_those_of_shifted_sets_at_the_lowest_level(tmp_path: Path) -> None:
    low = ranks("pi3nn", "released", (0.9,) * 5, (0.5, 0.99, 0.97, 0.95, 0.5))
    export(tmp_path, pd.concat([low.assign(gamma=0.99, score_auroc=0.1), low]))
    records = source.read(tmp_path, "released")
    assert records.aurocs("flight") == {"pi3nn": [0.99, 0.97, 0.95]}
    assert records.aurocs("cubic10d") == {}


def test_the_whole_grid_of_sqr_is_behind_table_1_where_it_was_run(tmp_path: Path) -> None:
    tables = [runs("boston", name, "released") for name in ("sqr", "sqr_free")]
    records = source.read(export(tmp_path, *tables, runs("wine", "sqr", "released")), "released")
    entries = [records.entry("sqr", dataset) for dataset in ("boston", "wine", "yacht")]
    assert [entry and entry.method for entry in entries] == ["sqr_free", "sqr", None]
