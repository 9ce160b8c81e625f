"""Exports are whole and repeat, and reports need no store."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pi3nn.errors import UserError
from pi3nn.paper import exports
from pi3nn.paper.ood.averages import Runs
from pi3nn.paper.ood.ood_tables import REPORTS, ExperimentReport
from pi3nn.run import reproduce
from pi3nn.store import Store
from tests.support.tasks import EXPERIMENTS, YACHT, exported, files


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("shards") / "store")


def test_an_export_repeated_is_the_same_byte_by_byte(store: Store, tmp_path: Path) -> None:
    for task in (YACHT, EXPERIMENTS["cubic10d"][0]):
        exported(task, store, tmp_path / "first")
        exported(task, store, tmp_path / "second")
    first, second = files(tmp_path / "first"), files(tmp_path / "second")
    assert first == second
    assert set(first) == {
        "records/paper/cubic10d-cubic10d-pi3nn.csv.gz",
        "records/paper/cubic10d-cubic10d-pi3nn.npz",
        "records/paper/.lock",
        "records/paper/provenance.json",
        "records/paper/uci-yacht-pi3nn.csv.gz",
    }


def test_an_export_has_the_records_of_the_store(store: Store, tmp_path: Path) -> None:
    exported(YACHT, store, tmp_path)
    table = exports.uci_records(tmp_path, "paper")
    keys = reproduce.prepare(YACHT).asked.keys
    rows = pd.DataFrame(store.rows(keys))
    assert list(table["key"]) == list(rows["key"])
    assert list(table["set"]) == ["train", "test"] * len(keys)
    for name in ("picp", "nmpiw", "alpha", "seconds"):
        np.testing.assert_allclose(table[name], rows[name].astype(float), rtol=5e-7)
    assert sorted(table["method.hidden"].unique()) == [50, 100, 200]
    assert set(table["budget"]) == {"full"}


def test_a_failing_write_leaves_no_task_behind(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exports.gzip, "compress", fail)
    with pytest.raises(OSError, match="No space"):
        exported(YACHT, store, tmp_path)
    assert not list((tmp_path / "records" / "paper").glob("*.csv.gz"))
    assert not list((tmp_path / "records" / "paper").glob(".tmp*"))
    monkeypatch.undo()
    assert exported(YACHT, store, tmp_path).is_file()


def test_provenance_names_machine_versions_and_times_but_no_place(
    store: Store, tmp_path: Path
) -> None:
    exported(YACHT, store, tmp_path)
    found = exports.provenance(tmp_path, "paper")
    assert (found["protocol"], found["budget"]) == ("paper", "full")
    origin = found["shards"][YACHT.name]
    assert origin["members"] == len(reproduce.prepare(YACHT).asked.members)
    assert origin["seconds"] > 0
    assert {"versions", "python", "cpu", "cores", "date", "commits"} <= set(origin)
    text = json.dumps(found)
    assert str(store.root) not in text
    assert "/" not in text.replace("/s", "")


def test_budgets_are_not_mixed_in_one_folder(store: Store, tmp_path: Path) -> None:
    exported(YACHT, store, tmp_path)
    with pytest.raises(UserError, match="full budget"):
        exported(replace(YACHT, budget="quick"), store, tmp_path)


# --- reports without a store ---------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_reports_from_exports_equal_those_from_the_store(
    name: str, store: Store, tmp_path: Path
) -> None:
    keys: list[str] = []
    for task in EXPERIMENTS[name]:
        exported(task, store, tmp_path)
        job = reproduce.prepare(task)
        keys += job.asked.keys
    runs = Runs.read(store, keys, job.asked.levels)
    from_store = REPORTS[task.experiment](runs)
    (from_files,) = exports.ood_reports(tmp_path, "paper").values()
    assert list(exports.ood_reports(tmp_path, "paper")) == [name]
    same(from_files, from_store)
    for figure, drawn in from_files.figures().items():
        assert pixels(drawn) == pixels(from_store.figures()[figure])


def same(ours: ExperimentReport, theirs: ExperimentReport) -> None:
    pd.testing.assert_frame_equal(ours.numbers, theirs.numbers, check_exact=True, check_dtype=False)
    assert len(ours.sections) == len(theirs.sections)
    for one, other in zip(ours.sections, theirs.sections, strict=True):
        assert (one.title, list(one.notes)) == (other.title, list(other.notes))
        pd.testing.assert_frame_equal(one.table, other.table)


def pixels(figure: Any) -> bytes:
    figure.canvas.draw()
    return bytes(figure.canvas.buffer_rgba())


def test_both_targets_of_released_flights_stay_two_methods(tmp_path: Path) -> None:
    common = {"experiment": "flight", "dataset": "flight", "protocol": "released", "status": "ok"}
    rows = [
        common | {"method": "pi3nn", "set": rank, "gamma": 0.95, "key": f"1e{fixed:d}", "seed": 1}
        | {"method.fix_targets": fixed, "score_mean": 0.5 + fixed / 4, "distance.TaxiOut": 2.0}
        for fixed in (False, True) for rank in ("train", "rank1", "rank2", "rank3", "rank4")
    ]  # fmt: skip
    place = exports.records_folder(tmp_path, "released") / "flight-flight-pi3nn.csv.gz"
    place.parent.mkdir(parents=True)
    pd.DataFrame(rows).to_csv(place, index=False)
    report = exports.ood_reports(tmp_path, "released")["flight"]
    shown = report.sections[0].table.set_index("method")["rank 1"]
    assert shown["PI3NN (with OOD)"].startswith("0.50")
    assert shown["PI3NN (with OOD), fixed targets"].startswith("0.75")
    assert report.sections[2].table["TaxiOut"].eq("+2.00").all()


def test_a_variant_has_a_picture_beside_that_of_its_method(store: Store, tmp_path: Path) -> None:
    exported(EXPERIMENTS["cubic1d"][0], store, tmp_path)
    pictures = {path.name for path in (tmp_path / "records" / "paper").glob("*.npz")}
    assert pictures == {"cubic1d-cubic1d-pi3nn.npz", "cubic1d-cubic1d-pi3nn_unpenalised.npz"}
    report = exports.ood_reports(tmp_path, "paper")["cubic1d"]
    assert set(report.numbers["method"]) == {"pi3nn", "pi3nn_unpenalised"}
    shown = report.sections[0].table
    assert set(shown["method"]) == {"PI3NN (with OOD)", "PI3NN (with OOD), no penalty"}
    assert shown["pinched"].str.endswith("of 2").all()
    assert report.figures().keys() == {"figure"}


def test_reading_needs_neither_torch_nor_hydra(store: Store, tmp_path: Path) -> None:
    for task in (YACHT, *EXPERIMENTS["cubic1d"]):
        exported(task, store, tmp_path)
    code = (
        "import sys; from pathlib import Path; from pi3nn.paper import exports; folder = Path(sys.argv[1]);"
        "exports.uci_records(folder, 'paper'); exports.ood_reports(folder, 'paper')['cubic1d'].figures();"
        "print({'torch', 'hydra'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("content", [None, b"no picture"])
def test_a_missing_or_broken_picture_is_told(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "cubic1d-cubic1d-qd.npz").write_bytes(content)
    with pytest.raises(UserError, match=r"delete cubic1d-cubic1d-qd\.csv\.gz beside it"):
        exports._picture(tmp_path / "cubic1d-cubic1d", "qd")
    with pytest.raises(UserError, match=r"delete cubic1d-cubic1d-pi3nn\.csv\.gz beside it"):
        exports._picture(tmp_path / "cubic1d-cubic1d", "pi3nn_unpenalised")


def test_nothing_exported_is_no_mistake_and_a_broken_file_is_told(tmp_path: Path) -> None:
    assert exports.uci_records(tmp_path, "paper").empty
    assert exports.ood_reports(tmp_path, "paper") == {}
    assert exports.provenance(tmp_path, "paper") == {}
    place = exports.path(tmp_path, YACHT)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"\x1f\x8b")
    with pytest.raises(UserError, match=r"uci-yacht-pi3nn.csv.gz can't be read"):
        exports.uci_records(tmp_path, "paper")
