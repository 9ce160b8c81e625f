"""``pi3nn-data`` as a person uses it: what it prints and its exit codes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pi3nn import data, paths
from pi3nn.cli.pi3nn_data import main
from pi3nn.data import bundled, download
from tests.conftest import REPOSITORY

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PI3NN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(download.MIRROR, raising=False)
    return tmp_path / "cache"


@pytest.fixture
def run(cache: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """A function from arguments to exit code, output and errors."""

    def pi3nn_data(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        printed = capfd.readouterr()
        return int(exit_.value.code or 0), printed.out, printed.err

    return pi3nn_data


@pytest.fixture
def with_mirror(mirror: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = mirror("streamflow/ph.dat").parent.parent
    monkeypatch.setenv(download.MIRROR, str(folder))
    return folder


def test_help_fits_on_a_screen_and_shows_examples(run):
    code, out, _ = run("--help")
    assert code == 0
    assert len(out.splitlines()) <= 35
    assert max(map(len, out.splitlines())) <= 100
    assert "pi3nn-data show boston --plot boston.png" in out


def test_every_example_in_the_help_is_understood(run, with_mirror, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = [
        line.split()[1:]
        for line in run("--help")[1].splitlines()
        if line.startswith("  pi3nn-data")
    ]
    assert len(examples) >= 4
    for example in examples:
        code, _, err = run(*example)
        assert code == 0, err


def test_no_command_imports_torch(cache):
    program = (
        "import sys\nfrom pi3nn.cli.pi3nn_data import main\n"
        "for arguments in (['list'], ['verify'], ['show', 'boston']):\n"
        "    try: main(arguments)\n"
        "    except SystemExit as exit: assert exit.code == 0\n"
        "assert 'torch' not in sys.modules and 'hydra' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=True, capture_output=True)


@pytest.mark.contract
def test_list_has_every_data_set_in_aligned_columns(run):
    code, out, err = run("list")
    header, *rows = out.splitlines()
    assert (code, err) == (0, "")
    assert [row.split()[0] for row in rows] == data.ready()
    starts = [header.index(title) for title in ("HERE", "SIZE", "LICENCE", "WHAT")]
    for row in rows:
        assert all(row[start - 1] == " " and row[start] != " " for start in starts), row
    state = {row.split()[0]: row.split()[1] for row in rows}
    assert state["boston"] == state["camels"] == "bundled"
    assert state["cubic10d"] == "generated"
    assert state["flight"] == state["streamflow"] == "no"


def test_fetch_brings_what_is_needed_and_list_then_says_so(run, with_mirror, cache):
    code, out, _ = run("fetch", "streamflow", "boston")
    assert code == 0
    assert out.splitlines() == [
        f"streamflow: {cache}/streamflow/ph.dat (137 kB)",
        "boston: nothing to download",
    ]
    assert (cache / "streamflow" / "ph.dat").read_bytes() == (
        with_mirror / "streamflow" / "ph.dat"
    ).read_bytes()
    (line,) = [row for row in run("list")[1].splitlines() if row.startswith("streamflow")]
    assert line.split()[1:4] == ["yes", "137", "kB"]


def test_fetch_goes_on_with_the_others_and_exits_2(run, with_mirror, monkeypatch):
    registry = download.registry()
    monkeypatch.setattr(
        download,
        "registry",
        lambda: {k: v for k, v in registry.items() if k != "streamflow/ph.dat"},
    )
    code, out, err = run("fetch", "streamflow", "flight")
    assert code == 2
    assert "flight: " in out
    assert "streamflow/ph.dat" in err
    assert "Traceback" not in err


def test_a_misspelt_name_suggests_the_nearest_before_anything_is_fetched(run, with_mirror, cache):
    code, out, err = run("fetch", "streamflow", "flihgt")
    assert (code, out) == (2, "")
    assert err.startswith("pi3nn-data: there is no data set 'flihgt' (did you mean 'flight'?)")
    assert len(err.splitlines()) == 1
    assert not cache.exists()


def test_verify_checks_bundled_and_downloaded_files(run, with_mirror):
    run("fetch", "streamflow")
    code, out, _ = run("verify")
    assert code == 0
    results = dict(line.split() for line in out.splitlines()[:-1])
    assert set(results) == {*bundled.checksums(), "streamflow/ph.dat"}
    assert set(results.values()) == {"ok"}


def test_verify_names_a_damaged_download_and_exits_1(run, with_mirror, cache):
    run("fetch", "streamflow")
    path = cache / "streamflow" / "ph.dat"
    path.write_bytes(path.read_bytes()[:-1])
    code, out, _ = run("verify")
    assert code == 1
    assert f"WRONG: {path} has another SHA-256" in out
    assert out.splitlines()[-1].endswith("files are wrong: streamflow/ph.dat")


def test_verify_names_a_damaged_bundled_file_and_exits_1(run, tmp_path, monkeypatch):
    shipped = paths.bundled_data()
    for name in ("registry.json", "downloads.json", *bundled.checksums()):
        copy = tmp_path / "data" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((shipped / name).read_bytes())
    monkeypatch.setattr(paths, "bundled_data", lambda: tmp_path / "data")
    assert run("verify")[0] == 0
    (tmp_path / "data" / "uci" / "yacht.csv.gz").write_bytes(b"spoilt")
    code, out, _ = run("verify")
    assert code == 1
    assert out.splitlines()[-1].endswith("files are wrong: uci/yacht.csv.gz")


def test_verify_names_a_recorded_download_that_changed(run, cache):
    name = next(name for name in download.registry() if name.endswith(".zip"))
    (cache / name).parent.mkdir(parents=True)
    (cache / name).write_bytes(b"PK")
    assert run("verify")[0] == 1, "a file without a record can't be trusted"
    download.record_of(name).write_text(f'{{"sha256": "{download.sha256(cache / name)}"}}')
    assert run("verify")[0] == 0
    (cache / name).write_bytes(b"PK changed")
    code, out, _ = run("verify")
    assert code == 1
    assert name in out.splitlines()[-1]


def downloads(name: str) -> list[str]:
    """Files that a data set has to be fetched with."""
    settings = data.settings(name)
    return getattr(data.source(settings.source), "downloads", lambda _: [])(settings)


@pytest.mark.contract
@pytest.mark.parametrize("name", [name for name in data.ready() if not downloads(name)])
def test_show_tells_rows_ranges_and_facts(run, name):
    code, out, _ = run("show", name)
    assert code == 0
    facts = data.open_dataset(name).facts
    for said in (facts.title, facts.source, facts.licence, *facts.files.values()):
        assert said in out
    assert f"{facts.target.meaning} (target)" in out


def test_show_draws_the_target_into_a_picture(run, tmp_path):
    code, out, _ = run("show", "yacht", "--plot", str(tmp_path / "yacht.png"))
    assert code == 0
    assert (tmp_path / "yacht.png").read_bytes().startswith(b"\x89PNG")
    assert str(tmp_path / "yacht.png") in out


@pytest.mark.parametrize("file", ["no/such/folder.png", "picture.nonsense"])
def test_a_picture_that_can_not_be_drawn_gives_one_sentence(run, tmp_path, file):
    code, _, err = run("show", "yacht", "--plot", str(tmp_path / file))
    assert code == 2
    assert err.startswith(f"pi3nn-data: can't draw into {tmp_path / file}")
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.glob("*.nonsense"))


def test_show_without_network_says_what_to_do(run, monkeypatch):
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    entry = download.registry()["streamflow/ph.dat"]
    refused = download.Download(("http://127.0.0.1:9/ph.dat",), entry.sha256, None, "", "")
    monkeypatch.setattr(download, "registry", lambda: {"streamflow/ph.dat": refused})
    code, out, err = run("show", "streamflow")
    assert (code, out) == (2, "")
    assert "connection refused" in err
    assert "PI3NN_DATA_MIRROR" in err
    assert "Traceback" not in err
