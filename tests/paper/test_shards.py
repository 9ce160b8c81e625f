"""The paper in shards: every one composes, exports are whole and repeat, and reports need no store."""

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

from pi3nn import config, plan, reproduce, runner
from pi3nn.cli import reproduce as command
from pi3nn.errors import UserError
from pi3nn.paper import export, report, shards
from pi3nn.paper.ood.reports import REPORTS, Report
from pi3nn.paper.ood.runs import Runs
from pi3nn.paper.shards import Shard
from pi3nn.store import Store

EVERY = [
    shard
    for protocol in shards.PROTOCOLS
    for budget in shards.BUDGETS
    for shard in shards.of_paper(protocol, budget)
]


# --- the list ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shard", EVERY[::7], ids=lambda s: f"{s.protocol}-{s.budget}-{s.name}")
def test_a_shard_composes_into_a_valid_configuration(shard: Shard) -> None:
    check(shard)


@pytest.mark.slow
@pytest.mark.parametrize("shard", EVERY, ids=lambda s: f"{s.protocol}-{s.budget}-{s.name}")
def test_every_shard_composes_into_a_valid_configuration(shard: Shard) -> None:
    check(shard)


def check(shard: Shard) -> None:
    cfg = config.composed(*shard.overrides)
    config.settle_sweep(cfg, shard.overrides)
    config.check(cfg)
    names = (cfg.experiment, cfg.dataset.name, cfg.method.name, cfg.protocol)
    assert names == (shard.experiment, shard.dataset, shard.method, shard.protocol)


def test_names_of_shards_are_unique_within_a_protocol() -> None:
    for protocol in shards.PROTOCOLS:
        names = [shard.name for shard in shards.of_paper(protocol)]
        assert len(set(names)) == len(names)


def test_all_cells_of_table_1_are_there_and_sqr_is_cut_on_the_largest_sets_only() -> None:
    uci = [shard for shard in shards.of_paper("released") if shard.experiment == "uci"]
    cells = {(shard.dataset, shard.method) for shard in uci}
    datasets = {*shards.SMALL, *shards.LARGE}
    assert len(datasets) == 9
    assert cells >= {(d, m) for d in datasets for m in ("pi3nn", "qd", "piven", "sqr", "der")}
    assert {d for d, method in cells if method == "sqr_free"} == set(shards.SMALL)
    cut = {shard.dataset for shard in uci if "cut to the setting" in shard.note}
    assert cut == set(shards.LARGE)


@pytest.mark.parametrize(("method", "members"), [("pi3nn", 45), ("qd", 405), ("piven", 405)])
def test_the_grids_are_those_of_the_paper(method: str, members: int) -> None:
    (shard,) = shards.selected("paper", "full", [f"uci-yacht-{method}"])
    assert len(reproduce.prepare(shard).members) == members


def test_quick_shards_have_fewer_members_and_rows() -> None:
    (full,), (quick,) = (
        shards.selected("paper", b, ["uci-kin8nm-qd"]) for b in shards.BUDGETS
    )  # fmt: skip
    assert len(reproduce.prepare(quick).members) < len(reproduce.prepare(full).members) / 10
    assert len(reproduce.prepare(quick).members[0].split.train.y) == 900
    assert "1000 rows" in quick.note


# --- exports -------------------------------------------------------------------------------------

FEW = ("dataset.rows=120", "dataset.test_rows=40", "dataset.ood_rows=30", "method.hidden=4")
CHEAP = {"pi3nn": "method.steps=10", "pi3nn_no_ood": "method.steps=10"}


def small(experiment: str, method: str, *more: str, dataset: str = "") -> Shard:
    """A shard that is trained within a second."""
    own = (*more, CHEAP.get(method, "method.epochs=1"), "workers=1")
    return Shard(experiment, dataset or experiment, method, "paper", "full", own)


YACHT = small("uci", "pi3nn", "splits=[1]", "seeds=[1,2]", dataset="yacht")
EXPERIMENTS = {
    "cubic1d": [small("cubic1d", m, "seeds=[1,2]", *FEW) for m in ("pi3nn", "pi3nn_no_ood", "qd")],
    "cubic10d": [small("cubic10d", m, "seeds=[1,2]", *FEW) for m in ("pi3nn", "der")],
    "camels": [
        small("streamflow", m, "encoder.epochs=1", "encoder.units=3", dataset="camels")
        for m in ("pi3nn", "der")
    ],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("shards") / "store")


def exported(shard: Shard, store: Store, folder: Path) -> Path:
    job = reproduce.prepare(shard)
    assert not job.failure
    reproduce.run(job, store, folder)
    return shards.path(folder, shard)


def files(folder: Path) -> dict[str, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_an_export_repeated_is_the_same_byte_by_byte(store: Store, tmp_path: Path) -> None:
    for shard in (YACHT, EXPERIMENTS["cubic10d"][0]):
        exported(shard, store, tmp_path / "first")
        exported(shard, store, tmp_path / "second")
    first, second = files(tmp_path / "first"), files(tmp_path / "second")
    assert first == second
    assert set(first) == {
        "records/paper/cubic10d-cubic10d-pi3nn.csv.gz",
        "records/paper/cubic10d-cubic10d-pi3nn.npz",
        "records/paper/provenance.json",
        "records/paper/uci-yacht-pi3nn.csv.gz",
    }


def test_an_export_has_the_records_of_the_store(store: Store, tmp_path: Path) -> None:
    exported(YACHT, store, tmp_path)
    table = shards.uci_records(tmp_path, "paper")
    keys = reproduce.prepare(YACHT).keys
    rows = pd.DataFrame(store.rows(keys))
    assert list(table["key"]) == list(rows["key"])
    assert list(table["set"]) == ["train", "test"] * len(keys)
    for name in ("picp", "nmpiw", "alpha", "seconds"):
        np.testing.assert_allclose(table[name], rows[name].astype(float), rtol=5e-7)
    assert sorted(table["method.hidden"].unique()) == [50, 100, 200]
    assert set(table["budget"]) == {"full"}


def test_a_failing_write_leaves_no_shard_behind(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export.gzip, "compress", fail)
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
    found = shards.provenance(tmp_path, "paper")
    assert (found["protocol"], found["budget"]) == ("paper", "full")
    origin = found["shards"][YACHT.name]
    assert origin["members"] == len(reproduce.prepare(YACHT).members)
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
    for shard in EXPERIMENTS[name]:
        exported(shard, store, tmp_path)
        job = reproduce.prepare(shard)
        keys += job.keys
    runs = Runs.read(store, keys, job.levels)
    from_store = REPORTS[shard.experiment](runs)
    (from_files,) = shards.ood_reports(tmp_path, "paper").values()
    assert list(shards.ood_reports(tmp_path, "paper")) == [name]
    same(from_files, from_store)
    for figure, drawn in from_files.figures().items():
        assert pixels(drawn) == pixels(from_store.figures()[figure])


def same(ours: Report, theirs: Report) -> None:
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
    place = shards.records_folder(tmp_path, "released") / "flight-flight-pi3nn.csv.gz"
    place.parent.mkdir(parents=True)
    pd.DataFrame(rows).to_csv(place, index=False)
    report = shards.ood_reports(tmp_path, "released")["flight"]
    shown = report.sections[0].table.set_index("method")["rank 1"]
    assert shown["PI3NN (with OOD)"].startswith("0.50")
    assert shown["PI3NN (with OOD), fixed targets"].startswith("0.75")
    assert report.sections[2].table["TaxiOut"].eq("+2.00").all()


def test_reading_needs_neither_torch_nor_hydra(store: Store, tmp_path: Path) -> None:
    for shard in (YACHT, *EXPERIMENTS["cubic1d"]):
        exported(shard, store, tmp_path)
    code = (
        "import sys; from pathlib import Path; from pi3nn.paper import shards; folder = Path(sys.argv[1]);"
        "shards.uci_records(folder, 'paper'); shards.ood_reports(folder, 'paper')['cubic1d'].figures();"
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
        shards._picture(tmp_path / "cubic1d-cubic1d", "qd")


def test_nothing_exported_is_no_mistake_and_a_broken_file_is_told(tmp_path: Path) -> None:
    assert shards.uci_records(tmp_path, "paper").empty
    assert shards.ood_reports(tmp_path, "paper") == {}
    assert shards.provenance(tmp_path, "paper") == {}
    place = shards.path(tmp_path, YACHT)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"\x1f\x8b")
    with pytest.raises(UserError, match=r"uci-yacht-pi3nn.csv.gz can't be read"):
        shards.uci_records(tmp_path, "paper")


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[Shard]:
    """Three shards instead of all; the second can't be run. No report: that takes seconds."""
    broken = replace(YACHT, dataset="boston", own=("dataset.leak_other_target=true", *YACHT.own))
    found = [replace(YACHT, method="linear", own=("splits=[1]",)), broken, YACHT]
    monkeypatch.setattr(shards, "of_paper", lambda *_: found)
    monkeypatch.setattr(report, "write", lambda folder: folder / "report.html")
    return found


def run(folder: Path, *arguments: str) -> int:
    places = ["--store", str(folder / "store"), "--output", str(folder / "out")]
    return command._guarded([*arguments, *places])


def test_a_failing_shard_does_not_stop_the_others_and_is_told(
    few: list[Shard], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == 1
    there = [shards.path(tmp_path / "out", shard).is_file() for shard in few]
    assert there == [True, False, True]
    said = capsys.readouterr()
    assert "failed: uci-boston-pi3nn; start it again" in said.err
    assert "one target only" in said.out


def test_an_exported_shard_is_done_without_its_store(
    few: list[Shard], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(tmp_path, "--only", "uci-yacht-*") == 0
    before = files(tmp_path / "out" / "records")

    def never(*_: Any) -> int:
        raise AssertionError("something is trained")

    monkeypatch.setattr(runner, "ensure", never)
    (tmp_path / "store").rename(tmp_path / "gone")
    assert run(tmp_path, "--only", "uci-yacht-*") == 0
    assert files(tmp_path / "out" / "records") == before


def test_a_kill_between_shards_loses_nothing(
    few: list[Shard], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, write, calls = export.write, export.write, []

    def stop(*arguments: Any) -> Path:
        calls.append(arguments[1].name)
        if len(calls) == 2:  # trained and stored, not yet exported
            raise KeyboardInterrupt
        return write(*arguments)

    monkeypatch.setattr(export, "write", stop)
    assert run(tmp_path, "--only", "uci-yacht-*") == 130
    assert shards.path(tmp_path / "out", few[0]).is_file()
    assert not shards.path(tmp_path / "out", few[2]).is_file()
    stored = Store(tmp_path / "store").keys()
    monkeypatch.setattr(export, "write", whole)
    assert run(tmp_path, "--only", "uci-yacht-*") == 0
    assert shards.path(tmp_path / "out", few[2]).is_file()
    assert Store(tmp_path / "store").keys() == stored


def test_plan_and_list_train_nothing(
    few: list[Shard], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--list") == 0
    assert "uci-yacht-linear" in capsys.readouterr().out
    assert run(tmp_path, "--plan", "--only", "uci-yacht-*") == 0
    said = capsys.readouterr().out
    assert "2 shards, 7 members, 7 to train, about" in said
    assert not (tmp_path / "store").exists()
    assert not (tmp_path / "out").exists()


def test_an_unknown_shard_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--only", "uci-mars-*") == 2
    assert "--list shows their names" in capsys.readouterr().err


def test_a_quick_run_says_so_in_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--budget", "quick", "--only", "uci-yacht-pi3nn", "--store", "store"]
    assert command._guarded(arguments) == 0
    folder = Path("results/paper-quick")
    assert set(shards.uci_records(folder, "paper")["budget"]) == {"quick"}
    origin = shards.provenance(folder, "paper")
    assert origin["budget"] == "quick"
    assert origin["shards"]["uci-yacht-pi3nn"]["note"].startswith("quick: 2 splits, 2 seeds")
    said = capsys.readouterr().out
    assert "of paper, quick: 0 are in" in said
    assert f"the report is {folder / 'report.html'}" in said
    assert "quick" in (folder / "report.html").read_text(encoding="utf-8").lower()


# --- rows of a UCI set ---------------------------------------------------------------------------


def test_a_limit_on_rows_makes_other_members_and_no_limit_leaves_keys_as_they_were() -> None:
    def first(*overrides: str) -> plan.Member:
        return plan.members(
            config.composed("dataset=yacht", "splits=[1]", "seeds=[1]", *overrides)
        )[0]

    whole, part = first(), first("dataset.limit=100")
    assert "limit" not in whole.config["dataset"]
    assert (len(whole.split.train.y), len(part.split.train.y)) == (277, 90)
    assert whole.key != part.key
    with pytest.raises(UserError, match="at least 20 rows"):
        first("dataset.limit=3")


def test_a_file_in_the_place_of_the_output_is_a_sentence_before_anything_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for more in (["--list"], ["--only", "uci-yacht-pi3nn"]):
        assert command._guarded(["--output", str(tmp_path / "file"), *more]) == 2
        assert "file can't be read (Not a directory): give another" in capsys.readouterr().err
    with pytest.raises(UserError, match="choose another folder with --output"):
        export.check_place(tmp_path / "file" / "records")
