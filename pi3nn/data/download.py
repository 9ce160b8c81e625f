"""One way to get a file: the cache, then the mirror, then its public home.

``data/downloads.json`` lists every file that can be had. A file gets its final name only after it
was found whole and its SHA-256 right. Where no checksum can be known in advance, the first
download writes it down beside the file (``<name>.json``), and later downloads must agree.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import sys
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pi3nn import atomic, paths
from pi3nn.errors import UserError, nearest

MIRROR = "PI3NN_DATA_MIRROR"  # a folder or an address, asked first
ATTEMPTS = 4
BACKOFF = 1.0  # seconds before the second attempt; doubled before each further one
TIMEOUT = (10.0, 60.0)  # seconds to connect, and between two pieces of the answer

log = logging.getLogger(__name__)


class UnavailableError(Exception):
    """One place can't give the file; the text says why."""


@dataclass(frozen=True)
class Download:
    """What is known of a file before it is here."""

    urls: tuple[str, ...]
    sha256: str | None  # None: not known in advance, the first download records it
    bytes: int | None
    licence: str
    note: str


def registry() -> dict[str, Download]:
    """Every file that can be fetched, by its name."""
    entries = json.loads((paths.bundled_data() / "downloads.json").read_text("utf-8"))
    return {
        name: Download(**{**entry, "urls": tuple(entry["urls"])}) for name, entry in entries.items()
    }


def fetch(name: str) -> Path:
    """Return the path of the file `name` in the cache, fetching it first where needed.

    Raises
    ------
    UserError
        When no place can give the file, or the cache folder can't take it.
    """
    known = registry()
    if name not in known:
        raise UserError(f"no file '{name}' is known to be downloadable{nearest(name, known)}")
    target = paths.cache() / name
    if is_here(name) or _adopted(name):
        return target
    tried = []
    for place in _places(name, known[name]):
        try:
            with writing(target.parent):
                _retrieve(place, name, target)
        except UnavailableError as reason:
            log.warning("%s: %s", place, reason)
            tried.append(f"{place} ({reason})")
        else:
            return target
    what = f"tried {', then '.join(tried)}" if tried else "it has no public address"
    raise UserError(
        f"can't get the data file {name}: {what}; set {MIRROR} to a folder or an address "
        "that has it, or dataset.path= to your own copy"
    )


def is_here(name: str) -> bool:
    """Whether the cache has the file `name` with the right SHA-256."""
    target, expected = paths.cache() / name, expected_sha256(name)
    return target.is_file() and expected is not None and sha256(target) == expected


def mirror_has(name: str) -> bool:
    """Whether a mirror is set and has the file `name`; a copy from it in the cache counts."""
    place = _mirror(name)
    if place is None:
        return False
    if isinstance(place, Path):
        return place.is_file()
    if is_here(name):
        return True
    import requests

    try:
        return requests.head(place, timeout=TIMEOUT, allow_redirects=True).ok
    except requests.RequestException as error:
        raise UserError(f"can't ask the mirror at {place}: {_reason(error)}") from error


def expected_sha256(name: str) -> str | None:
    """The SHA-256 the file `name` must have: registered, or recorded by the first download."""
    known = registry()[name].sha256
    if known is None and (record := record_of(name)).is_file():
        try:
            known = str(json.loads(record.read_text("utf-8"))["sha256"])
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{record} is damaged: delete it and fetch the file again") from error
    return known


def record_of(name: str) -> Path:
    """Where the first download writes down the checksum of a file without a registered one."""
    return paths.cache() / f"{name}.json"


def sha256(path: Path) -> str:
    """SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn what goes wrong on the disk into one sentence that names the folder."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"can't write in the folder {folder} ({error.strerror or error}): make room there, "
            "or set PI3NN_CACHE to another folder"
        ) from error


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """Give a temporary path that becomes `target` when the block ends well, else disappears."""
    with writing(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic.replacing(target) as temporary:
            yield temporary
            temporary.chmod(0o644)  # several users may share a cache


def _adopted(name: str) -> bool:
    """Record a whole file that someone put in the cache by hand; drop a broken one."""
    target = paths.cache() / name
    if expected_sha256(name) is not None or not target.is_file():
        return False
    try:
        _check_content(target, name)
    except UnavailableError as reason:
        log.warning("%s: %s", target, reason)
        with writing(target.parent):
            target.unlink()
        return False
    _record(name, target, str(target))
    return True


def _places(name: str, entry: Download) -> Iterator[Path | str]:
    mirror = _mirror(name)
    if mirror is not None:
        yield mirror
    yield from entry.urls


def _mirror(name: str) -> Path | str | None:
    base = os.environ.get(MIRROR)
    if not base:
        return None
    if base.startswith(("http://", "https://")):
        return f"{base.rstrip('/')}/{quote(name)}"
    return Path(base).expanduser() / name


def _retrieve(place: Path | str, name: str, target: Path) -> None:
    """Let pooch bring the file under a temporary name, check it and rename it."""
    import pooch

    expected = expected_sha256(name)

    def bring(_place: str, temporary: str, _pooch: object) -> None:
        _copy(place, temporary) if isinstance(place, Path) else _download(place, temporary)
        _check_content(Path(temporary), name)
        os.chmod(temporary, 0o644)  # several users may share a cache
        if expected is None:
            # Before the rename, so that no download ever stands here unrecorded.
            _record(name, Path(temporary), str(place))

    pooch.get_logger().setLevel("WARNING")
    try:
        pooch.retrieve(
            url=str(place),
            known_hash=expected and f"sha256:{expected}",
            fname=target.name,
            path=target.parent,
            downloader=bring,
        )
    except ValueError as error:
        if registry()[name].sha256 is None:
            raise UnavailableError(
                f"the file differs from the first download: delete {record_of(name)} to accept it"
            ) from error
        raise UnavailableError(f"the file has another SHA-256 than {expected}") from error


def _copy(source: Path, temporary: str) -> None:
    try:
        file = source.open("rb")
    except OSError as error:
        raise UnavailableError(error.strerror or str(error)) from error
    with file, open(temporary, "wb") as copy:
        shutil.copyfileobj(file, copy)


def _download(url: str, temporary: str) -> None:
    import pooch
    import requests

    log.info("downloading %s", url)
    # Each call empties the temporary file first: a restart is a clean one.
    http = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(), chunk_size=1 << 16, timeout=TIMEOUT
    )
    for attempt in range(1, ATTEMPTS + 1):
        try:
            http(url, temporary, None)
        except requests.RequestException as error:
            if attempt == ATTEMPTS or not _may_pass(error):
                raise UnavailableError(_reason(error)) from error
            log.warning("%s: %s; trying again", url, _reason(error))
            time.sleep(BACKOFF * 2 ** (attempt - 1))
        else:
            return


def _may_pass(error: Exception) -> bool:
    """Whether the same request may work a little later."""
    import requests

    if isinstance(error, requests.HTTPError):
        return error.response.status_code >= 500 or error.response.status_code in (408, 429)
    passing = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
    return isinstance(error, passing) and not isinstance(error, requests.exceptions.SSLError)


def _reason(error: Exception) -> str:
    """A few words for what requests wraps in several layers."""
    import requests

    if isinstance(error, requests.HTTPError):
        return f"the server answered {error.response.status_code} {error.response.reason}"
    words = {
        "timed out": "no answer in time",
        "refused": "connection refused",
        "NameResolution": "host name not found",
        "IncompleteRead": "the connection broke off in the middle of the file",
        "Connection aborted": "the connection broke off",
    }
    return next((said for sign, said in words.items() if sign in str(error)), str(error))


def _check_content(path: Path, name: str) -> None:
    """Refuse what a broken server sends in place of a file; needs no checksum."""
    if path.stat().st_size == 0:
        raise UnavailableError("the file there is empty")
    with path.open("rb") as file:
        start = file.read(512).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"<"):
        raise UnavailableError("a web page instead of the file")
    if name.endswith(".zip"):
        try:
            with zipfile.ZipFile(path) as archive:
                damaged = archive.testzip()
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise UnavailableError("a damaged or cut-off zip archive") from error
        if damaged is not None:
            raise UnavailableError(f"a damaged zip archive: {damaged} can't be unpacked")


def _record(name: str, path: Path, place: str) -> None:
    facts = {"sha256": sha256(path), "bytes": path.stat().st_size, "from": place}
    with whole_file(record_of(name)) as temporary:
        temporary.write_text(json.dumps(facts, indent=2) + "\n", "utf-8")
