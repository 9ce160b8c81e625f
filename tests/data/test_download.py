"""Downloads against a real HTTP server on this machine, and real small disks."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pi3nn import paths
from pi3nn.data import download
from pi3nn.errors import UserError
from tests.conftest import REPOSITORY
from tests.support.tables import zipped

CONTENT = b"1 2 3\n" * 40_000  # 240 kB
ARCHIVE = zipped({"table.csv": b"a,b\n1,2\n" * 1000})


class Handler(BaseHTTPRequestHandler):
    """Each first part of a path is one way for a server to behave; the rest names the file."""

    asked: Counter[str]
    bodies: dict[str, bytes]

    def do_HEAD(self) -> None:
        self.send_response(200 if self.path.strip("/") in self.bodies else 404)
        self.end_headers()

    def do_GET(self) -> None:
        way, _, _name = self.path.strip("/").partition("/")
        self.asked[way] += 1
        body = self.bodies.get(self.path.strip("/"), CONTENT)
        if way == "missing":
            return self.send_error(404)
        if way == "down" or (way == "flaky" and self.asked[way] < 3):
            return self.send_error(500)
        if way == "stall" or (way == "pause" and self.asked[way] == 1):
            self._answer(body, upto=1000)
            self.wfile.flush()
            time.sleep(1.0 if way == "stall" else 3.0)
            return None
        if way == "cut" or (way == "cut_once" and self.asked[way] == 1):
            return self._answer(body, upto=len(body) // 2)
        if way == "flipped":
            return self._answer(body[:500] + bytes([body[500] ^ 1]) + body[501:])
        if way == "empty":
            return self._answer(b"")
        if way == "html":
            return self._answer(b"\n<!DOCTYPE html><html>Please log in</html>")
        if way == "unannounced":  # no Content-Length: only the content shows that half is missing
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body[: len(body) // 2])
            return None
        return self._answer(body)

    def _answer(self, body: bytes, upto: int | None = None) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:upto])

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, type[Handler]]]:
    """The address of a server and its handler, with what was asked and what it gives."""
    handler = type("OneHandler", (Handler,), {"asked": Counter(), "bodies": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        http.daemon_threads = True
        threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{http.server_address[1]}", handler
        http.shutdown()


Register = Callable[..., None]


@pytest.fixture
def register(tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Register:
    """A function that makes a file downloadable, with an empty cache and short waiting times."""
    entries: dict[str, Any] = {}
    (tmp_path / "data").mkdir()

    def add(name: str, *urls: str, content: bytes | None = CONTENT) -> None:
        checksum = None if content is None else hashlib.sha256(content).hexdigest()
        entries[name] = {"urls": urls, "sha256": checksum, "bytes": None, "licence": "", "note": ""}
        (tmp_path / "data" / "downloads.json").write_text(json.dumps(entries))

    monkeypatch.setattr(paths, "bundled_data", lambda: tmp_path / "data")
    monkeypatch.setattr(download, "ATTEMPTS", 3)
    monkeypatch.setattr("pooch.core.time", types.SimpleNamespace(sleep=lambda _seconds: None))
    monkeypatch.setattr(download, "TIMEOUT", (1.0, 0.3))
    return add


def _files(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_file_is_downloaded_once_and_then_found_in_the_cache(server, register, tmp_path, capfd):
    address, handler = server
    register("river/a.dat", f"{address}/ok/a.dat")
    assert download.fetch("river/a.dat").read_bytes() == CONTENT
    assert download.fetch("river/a.dat") == tmp_path / "cache" / "river" / "a.dat"
    assert handler.asked == {"ok": 1}
    assert _files(tmp_path / "cache") == ["river/a.dat"]
    assert capfd.readouterr().err == "", "no progress bar where nobody looks"


def test_a_damaged_file_in_the_cache_is_fetched_again(server, register, tmp_path):
    register("a.dat", f"{server[0]}/ok/a.dat")
    target = download.fetch("a.dat")
    target.write_bytes(CONTENT[:-1] + b"X")
    assert not download.is_here("a.dat")
    assert download.fetch("a.dat").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("way", "reason", "requests"),
    [
        ("missing", "404", 1),
        ("down", "500", 3),
        ("stall", "no answer in time", 3),
        ("cut", "broke off in the middle", 3),
        ("flipped", "another SHA-256", 1),
        ("empty", "empty", 1),
        ("html", "a web page instead of the file", 1),
    ],
)
def test_a_server_in_trouble_gives_one_sentence_and_no_file(
    server, register, tmp_path, way, reason, requests
):
    address, handler = server
    register("a.dat", f"{address}/{way}/a.dat")
    with pytest.raises(UserError, match=reason) as error:
        download.fetch("a.dat")
    assert f"{address}/{way}/a.dat" in str(error.value), "says what was tried"
    assert "PI3NN_DATA_MIRROR" in str(error.value), "says what to do"
    assert "\n" not in str(error.value)
    assert handler.asked[way] == requests
    assert _files(tmp_path / "cache") == []


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:9/a.dat", "connection refused"),
        ("http://no-such-host.invalid/a.dat", "host name not found"),
    ],
)
def test_an_unreachable_host_gives_one_sentence_and_no_file(register, tmp_path, url, reason):
    register("a.dat", url)
    with pytest.raises(UserError, match=reason):
        download.fetch("a.dat")
    assert _files(tmp_path / "cache") == []


@pytest.mark.parametrize(("way", "requests"), [("flaky", 3), ("cut_once", 2)])
def test_passing_trouble_is_overcome_by_a_clean_restart(server, register, way, requests):
    address, handler = server
    register("a.dat", f"{address}/{way}/a.dat")
    assert download.fetch("a.dat").read_bytes() == CONTENT
    assert handler.asked[way] == requests


def test_the_second_address_is_tried_when_the_first_fails(server, register):
    register("a.dat", f"{server[0]}/missing/a.dat", f"{server[0]}/ok/a.dat")
    assert download.fetch("a.dat").read_bytes() == CONTENT


@pytest.mark.parametrize("way", ["unannounced", "flipped", "html", "empty"])
def test_a_broken_zip_is_recognised_without_a_known_checksum(server, register, tmp_path, way):
    server[1].bodies[f"{way}/a.zip"] = ARCHIVE
    register("a.zip", f"{server[0]}/{way}/a.zip", content=None)
    with pytest.raises(UserError, match=r"zip archive|web page|empty"):
        download.fetch("a.zip")
    assert _files(tmp_path / "cache") == []


def test_the_first_download_records_the_checksum_and_later_ones_must_agree(
    server, register, tmp_path
):
    address, handler = server
    handler.bodies["ok/a.zip"] = ARCHIVE
    register("a.zip", f"{address}/ok/a.zip", content=None)
    target = download.fetch("a.zip")
    recorded = json.loads((tmp_path / "cache" / "a.zip.json").read_text())
    assert recorded["sha256"] == hashlib.sha256(ARCHIVE).hexdigest()
    target.unlink()
    assert download.fetch("a.zip").read_bytes() == ARCHIVE, "the same again is welcome"
    target.unlink()
    handler.bodies["ok/a.zip"] = zipped({"table.csv": b"something else"})
    with pytest.raises(UserError, match=r"differs from the first download.*a\.zip\.json"):
        download.fetch("a.zip")
    assert _files(tmp_path / "cache") == ["a.zip.json"]
    (tmp_path / "cache" / "a.zip.json").unlink()
    assert download.fetch("a.zip").is_file(), "accepted once the record is gone"


def test_a_zip_put_into_the_cache_by_hand_is_recorded_and_used(register, tmp_path):
    register("a.zip", "http://127.0.0.1:9/a.zip", content=None)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "a.zip").write_bytes(ARCHIVE)
    assert download.fetch("a.zip").read_bytes() == ARCHIVE
    assert download.is_here("a.zip")


def test_a_mirror_folder_comes_before_the_public_address(register, tmp_path, monkeypatch):
    register("river/a.dat", "http://127.0.0.1:9/a.dat")
    (tmp_path / "mirror" / "river").mkdir(parents=True)
    (tmp_path / "mirror" / "river" / "a.dat").write_bytes(CONTENT)
    monkeypatch.setenv(download.MIRROR, str(tmp_path / "mirror"))
    assert download.mirror_has("river/a.dat")
    assert download.fetch("river/a.dat").read_bytes() == CONTENT


def test_a_mirror_address_comes_before_the_public_address(server, register, monkeypatch):
    address, handler = server
    handler.bodies["mirror/river/a.dat"] = CONTENT
    register("river/a.dat", f"{address}/ok/a.dat")
    register("river/b.dat", f"{address}/ok/b.dat")
    monkeypatch.setenv(download.MIRROR, f"{address}/mirror/")
    assert download.mirror_has("river/a.dat")
    assert not download.mirror_has("river/b.dat")
    assert download.fetch("river/a.dat").read_bytes() == CONTENT
    assert handler.asked == {"mirror": 1}


@pytest.mark.parametrize("content", [None, b"", CONTENT[:-1]])
def test_a_mirror_with_no_or_a_wrong_file_is_passed_over(
    server, register, tmp_path, monkeypatch, content
):
    register("a.dat", f"{server[0]}/ok/a.dat")
    (tmp_path / "mirror").mkdir()
    if content is not None:
        (tmp_path / "mirror" / "a.dat").write_bytes(content)
    monkeypatch.setenv(download.MIRROR, str(tmp_path / "mirror"))
    assert download.fetch("a.dat").read_bytes() == CONTENT


def test_an_unknown_name_suggests_the_nearest(register):
    register("river/a.dat", "http://127.0.0.1:9/a.dat")
    with pytest.raises(UserError, match=r"did you mean 'river/a\.dat'"):
        download.fetch("river/b.dat")


def test_a_file_without_public_address_says_that_a_mirror_is_needed(register):
    register("a.dat")
    with pytest.raises(UserError, match="no public address; set PI3NN_DATA_MIRROR"):
        download.fetch("a.dat")


def test_several_at_once_get_the_same_whole_file(server, register, tmp_path):
    register("a.dat", f"{server[0]}/ok/a.dat")
    with ThreadPoolExecutor(4) as pool:
        got = [path.read_bytes() for path in pool.map(download.fetch, ["a.dat"] * 4)]
    assert got == [CONTENT] * 4
    assert _files(tmp_path / "cache") == ["a.dat"]


def test_a_killed_download_leaves_no_file_under_the_final_name(server, register, tmp_path):
    address, handler = server
    register("a.dat", f"{address}/pause/a.dat")
    program = (
        "from pathlib import Path; from pi3nn import paths; from pi3nn.data import download;"
        f"paths.bundled_data = lambda: Path({str(tmp_path / 'data')!r}); download.fetch('a.dat')"
    )
    child = subprocess.Popen([sys.executable, "-c", program], cwd=REPOSITORY)
    while not handler.asked["pause"] or not _files(tmp_path / "cache"):
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not (tmp_path / "cache" / "a.dat").exists()
    assert download.fetch("a.dat").read_bytes() == CONTENT


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A function that mounts a small disk in memory with the given options."""
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True
        )
        if done.returncode:
            pytest.skip(f"may not mount a tmpfs here: {done.stderr.decode().strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_gives_one_sentence_and_no_file(server, register, disk, monkeypatch):
    folder = disk("size=64k")
    monkeypatch.setenv("PI3NN_CACHE", str(folder))
    register("river/a.dat", f"{server[0]}/ok/a.dat")
    with pytest.raises(UserError, match=f"{folder}/river.*No space left") as error:
        download.fetch("river/a.dat")
    assert "PI3NN_CACHE" in str(error.value)
    assert _files(folder) == []


def test_a_read_only_cache_gives_one_sentence(server, register, disk, tmp_path, monkeypatch):
    if os.geteuid() == 0:  # permissions do not bind root, a read-only disk does
        folder = disk("ro,size=64k")
    else:
        folder = tmp_path / "closed"
        folder.mkdir(mode=0o500)
    monkeypatch.setenv("PI3NN_CACHE", str(folder))
    register("river/a.dat", f"{server[0]}/ok/a.dat")
    with pytest.raises(UserError, match=rf"can't write in the folder {folder}/river \((Read|Perm)"):
        download.fetch("river/a.dat")


def test_a_file_in_the_way_of_the_cache_folder_gives_one_sentence(server, register, tmp_path):
    (tmp_path / "cache").write_text("not a folder")
    register("river/a.dat", f"{server[0]}/ok/a.dat")
    with pytest.raises(UserError, match="can't write in the folder"):
        download.fetch("river/a.dat")


def test_a_failed_write_leaves_the_old_file_whole(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with contextlib.suppress(RuntimeError), download.replacing(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert _files(tmp_path) == ["a.txt"]
    assert target.read_text() == "old"


def test_every_registered_checksum_is_that_of_the_mirror(mirror):
    checked = 0
    for name, entry in download.registry().items():
        if entry.sha256 is not None:
            assert download.sha256(mirror(name)) == entry.sha256
            assert mirror(name).stat().st_size == entry.bytes
            checked += 1
    assert checked == 5


def test_all_twelve_months_of_flights_are_registered_at_their_public_home():
    zips = {name: entry for name, entry in download.registry().items() if name.endswith(".zip")}
    assert len(zips) == 12
    for name, entry in zips.items():
        assert entry.urls == (f"https://transtats.bts.gov/PREZIP/{name.removeprefix('flight/')}",)
