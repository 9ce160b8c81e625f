"""Whatever happens to its files, nothing wrong comes out of a store, and no traceback."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pi3nn.cli import pi3nn_report, pi3nn_run
from pi3nn.results import records, summary
from pi3nn.run import execute, forecast, save
from pi3nn.run.request import Request, request
from pi3nn.run.workers import TrainingOptions
from pi3nn.store import Store, upkeep
from pi3nn.store import damage as damage_module
from tests.support.runs import comparable, composed, exit_code

RUN = ("dataset=yacht", "method=linear", "seeds=[1]", "workers=1")
RUNS = {"splits=[1,2,3]": 3, "splits=[4]": 1, "splits=[5,6]": 2}
ALL = "splits=[1,2,3,4,5,6]"
OPTIONS = TrainingOptions(workers=1, quiet=True)
Rows = dict[Any, dict[str, Any]]
Damage = Callable[[Path, Path, random.Random], None]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of six members in three files, and its index."""
    root = tmp_path_factory.mktemp("whole") / "runs"
    for splits in RUNS:
        asked = request(composed(*RUN, splits, f"store={root}"), ())
        execute.ensure(asked.wanted(Store(root)), OPTIONS)
    assert len(list(root.glob("*.members"))) == len(RUNS)
    assert (root / ".index" / "members.sqlite").is_file()
    return root


@pytest.fixture(scope="module")
def expected(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Records of all members at two levels."""
    root = tmp_path_factory.mktemp("expected") / "runs"
    asked = request(composed(*RUN, ALL, "levels=[0.8,0.95]", f"store={root}"), ())
    execute.ensure(asked.wanted(Store(root)), OPTIONS)
    rows = comparable(Store(root))
    assert comparable(Store(whole)).items() <= rows.items()
    return rows


# --- damages -------------------------------------------------------------------------------------


def flip(file: Path, _: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def flip_end(file: Path, _: Path, chance: random.Random) -> None:
    """In the marks."""
    content = bytearray(file.read_bytes())
    content[-chance.randrange(1, min(len(content), 1500))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def cut(file: Path, _: Path, chance: random.Random) -> None:
    os.truncate(file, chance.choice([0, 1, chance.randrange(file.stat().st_size)]))


def exchange(file: Path, other: Path, _: random.Random) -> None:
    mine = file.read_bytes()
    file.write_bytes(other.read_bytes())
    other.write_bytes(mine)


def copy_over(file: Path, other: Path, _: random.Random) -> None:
    file.write_bytes(other.read_bytes())


def remove(file: Path, _: Path, __: random.Random) -> None:
    file.unlink()


def garbage(file: Path, _: Path, chance: random.Random) -> None:
    file.write_bytes(chance.randbytes(chance.randrange(1, 5000)))


def folder(file: Path, _: Path, __: random.Random) -> None:
    file.unlink()
    file.mkdir()


def link(file: Path, other: Path, chance: random.Random) -> None:
    file.unlink()
    file.symlink_to(chance.choice([str(other), "nowhere", file.name, "/dev/zero", "/"]))


def pipe(file: Path, _: Path, __: random.Random) -> None:
    file.unlink()
    os.mkfifo(file)


DAMAGES: list[Damage] = [
    flip, flip, flip_end, flip_end, cut, exchange, copy_over, remove, garbage, folder, link, pipe
]  # fmt: skip


# --- what is done with a damaged store -----------------------------------------------------------


def has_whole_index(root: Path) -> bool:
    file = root / ".index" / "members.sqlite"
    content = file.read_bytes() if file.is_file() else b""
    return hashlib.sha256(content[:-32]).digest() == content[-32:]


def tabulated(root: Path, asked: Request, expected: Rows) -> None:
    """Every row is right; a member that is left out has been spoken of, if anything knew of it."""
    knew = has_whole_index(root)
    table = records.table([Store(root)], ["dataset=yacht"])
    for row in table.to_dict("records"):
        wanted = expected[row["key"], row["set"], row["gamma"]]
        assert all(row[name] == wanted[name] for name in ("picp", "mpiw", "rmse", "split"))
    if set(table["key"]) != set(asked.keys):
        assert damage_module.said or not knew
    assert len(table) % 2 == 0  # both sets of a member, or none


def trained_again(root: Path, asked: Request, expected: Rows) -> None:
    store = Store(root)
    execute.mended(lambda: execute.ensure(asked.wanted(store), OPTIONS))
    summary.judged_records(store, asked.keys, asked.levels)
    assert comparable(Store(root)).items() <= expected.items()
    assert set(asked.keys) <= set(Store(root).keys())


def given_a_level(root: Path, asked: Request, expected: Rows) -> None:
    store = Store(root)
    wanted = execute.Wanted(asked.members, store, {key: [0.8, 0.95] for key in asked.keys})
    execute.mended(lambda: execute.ensure(wanted, OPTIONS))
    assert comparable(Store(root)) == expected


def planned(root: Path, asked: Request, expected: Rows) -> None:
    lines = list(forecast.describe(asked.wanted(Store(root)), OPTIONS))
    assert lines[0].startswith("6 members")


def saved(root: Path, asked: Request, expected: Rows) -> None:
    store, folder = Store(root), root.parent / "model"

    def run() -> None:
        execute.ensure(asked.wanted(store), OPTIONS)
        save.save(asked.members[:1], store, asked.levels, folder)

    execute.mended(run)
    assert list(folder.iterdir())


def verified(root: Path, asked: Request, expected: Rows) -> None:
    """What is not named as damaged is whole; then all is well again."""
    store = Store(root)
    found = upkeep.verify(store)
    if not found.damaged:
        assert comparable(Store(root)).items() <= expected.items()
    upkeep.clear(store, found)
    assert upkeep.verify(Store(root)).damaged == {}
    trained_again(root, asked, expected)


USES = [tabulated, trained_again, given_a_level, planned, saved, verified]


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_of_500_damages_none_reaches_a_table_or_is_a_traceback(
    whole: Path, expected: Rows, tmp_path: Path, use: Callable[..., None]
) -> None:
    chance = random.Random(USES.index(use))
    asked = request(composed(*RUN, ALL, f"store={tmp_path / 'runs'}"), ())
    for _ in range(500 // len(USES) + 1):
        damage_module.said.clear()
        shutil.rmtree(tmp_path, ignore_errors=True)
        shutil.copytree(whole, tmp_path / "runs")
        files = sorted(path for path in (tmp_path / "runs").rglob("[!.]*") if path.is_file())
        for file in chance.sample(files, chance.choice([1, 1, 2])):
            if file.is_file():
                others = [path for path in files if path != file and path.is_file()]
                chance.choice(DAMAGES)(file, chance.choice(others), chance)
        use(tmp_path / "runs", asked, expected)


def flip_records(file: Path, _: Path, __: random.Random) -> None:
    """Of one member."""
    content = bytearray(file.read_bytes())
    content[content.index(b'"picp": 0.') + 10] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("damage", [flip_records, copy_over, cut, folder, pipe])
def test_commands_say_what_is_damaged_in_one_line_and_go_on(
    whole: Path,
    expected: Rows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    damage: Damage,
) -> None:
    monkeypatch.chdir(tmp_path)
    damage_module.said.clear()
    shutil.copytree(whole, "results/runs")
    first, second, _ = sorted(Path("results/runs").glob("*.members"))
    damage(first, second, random.Random(1))
    assert exit_code(pi3nn_report.main, "records", "--output", "x.csv") == 0
    (message,) = caplog.messages
    assert message.startswith("damaged: ")
    assert exit_code(pi3nn_report.main, "verify") == 1
    assert exit_code(pi3nn_run.main, *RUN, ALL, "plan=true") == 0
    assert exit_code(pi3nn_run.main, *RUN, ALL, "levels=[0.8,0.95]") == 0
    assert comparable(Store("results/runs")) == expected
    assert list(Path("results/runs").glob(".damaged/*")) or damage is copy_over
    assert exit_code(pi3nn_report.main, "verify", "--clear") == 0
    assert not Path("results/runs/.damaged").exists()
    assert exit_code(pi3nn_report.main, "verify") == 0
    assert comparable(Store("results/runs")) == expected
