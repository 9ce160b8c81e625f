"""One way to get a file: the cache, then the mirror, then its public home.

``data/downloads.json`` lists every file that can be had. Pooch brings it under a temporary name,
tries again, and renames it once its SHA-256 is right. Where no checksum can be known in advance, the
first download writes it down beside the file (``<name>.json``), and later downloads must agree.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import os
import shutil
import sys
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
ATTEMPTS = 4  # pooch waits 1, 2 and 3 seconds between them
TIMEOUT = (10.0, 60.0)  # seconds to connect, and between two pieces of the answer
SHARED = 0o644  # permissions of a file: several users may share a cache

log = logging.getLogger(__name__)


class UnavailableError(Exception):
    """One address can't give the file; the text says why."""


@dataclass(frozen=True)
class Download:
    """What the registry says of a file."""

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
        When no address can give the file, or the cache folder can't take it.
    """
    entries = registry()
    if name not in entries:
        raise UserError(f"no file '{name}' is known to be downloadable{nearest(name, entries)}")
    path = paths.cache() / name
    if is_here(name) or _adopted(name):
        return path
    mirror, failures = _in_mirror(name), []
    for address in [*([mirror] if mirror else []), *entries[name].urls]:
        try:
            _retrieve(address, name)
        except UnavailableError as reason:
            log.warning("%s: %s", address, reason)
            failures.append(f"{address} ({reason})")
        else:
            return path
    tried = f"tried {', then '.join(failures)}" if failures else "it has no public address"
    raise UserError(
        f"can't get the data file {name}: {tried}; set {MIRROR} to a folder or an address "
        "that has it, or dataset.path= to your own copy"
    )


def is_here(name: str) -> bool:
    """Whether the cache has the file `name` with the right SHA-256."""
    path, expected = paths.cache() / name, expected_sha256(name)
    return path.is_file() and expected is not None and sha256(path) == expected


def mirror_has(name: str) -> bool:
    """Whether a mirror is set and has the file `name`; a copy from it in the cache counts."""
    address = _in_mirror(name)
    if address is None:
        return False
    if isinstance(address, Path):
        return address.is_file()
    if is_here(name):
        return True
    import pooch
    import requests

    try:
        return bool(pooch.HTTPDownloader(timeout=TIMEOUT)(address, "", None, check_only=True))
    except requests.RequestException as error:
        raise UserError(f"can't ask the mirror at {address}: {_reason(error)}") from error


def expected_sha256(name: str) -> str | None:
    """The SHA-256 the file `name` must have: registered, or recorded by the first download."""
    checksum = registry()[name].sha256
    if checksum is None and (record := record_of(name)).is_file():
        try:
            checksum = str(json.loads(record.read_text("utf-8"))["sha256"])
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{record} is damaged: delete it and fetch the file again") from error
    return checksum


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
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path that becomes `path` when the block ends well, else disappears."""
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic.replacing(path) as temporary:
            yield temporary
            temporary.chmod(SHARED)


def _adopted(name: str) -> bool:
    """Record a sound file that someone put in the cache by hand; drop a broken one."""
    path = paths.cache() / name
    if expected_sha256(name) is not None or not path.is_file():
        return False
    try:
        _check_content(path, name)
    except UnavailableError as reason:
        log.warning("%s: %s", path, reason)
        with writing(path.parent):
            path.unlink()
        return False
    _record(name, path, str(path))
    return True


def _in_mirror(name: str) -> Path | str | None:
    """Where the mirror has the file `name`: a path or an address; None without a mirror."""
    mirror = os.environ.get(MIRROR)
    if not mirror:
        return None
    if mirror.startswith(("http://", "https://")):
        return f"{mirror.rstrip('/')}/{quote(name)}"
    return Path(mirror).expanduser() / name


def _retrieve(address: Path | str, name: str) -> None:
    """Let pooch bring the file under a temporary name, try again, and rename it once it is right.

    Pooch tries again after every RequestException and ValueError; what no further attempt can
    mend is raised as an UnavailableError at once.
    """
    import pooch

    expected, attempts = expected_sha256(name), itertools.count(1)

    def bring(_address: str, temporary: str, _pooch: object) -> None:
        if isinstance(address, Path):
            _copy(address, temporary)
        else:
            _download(address, temporary, last=next(attempts) == ATTEMPTS)
        _check_content(Path(temporary), name)
        if expected is not None and sha256(Path(temporary)) != expected:
            if registry()[name].sha256 is not None:
                raise UnavailableError(f"the file has another SHA-256 than {expected}")
            raise UnavailableError(
                f"the file differs from the first download: delete {record_of(name)} to accept it"
            )
        os.chmod(temporary, SHARED)
        if expected is None:
            # Before the rename, so that no download ever stands here unrecorded.
            _record(name, Path(temporary), str(address))

    pooch.get_logger().setLevel("WARNING")
    files = pooch.create(
        path=paths.cache(),
        base_url="",
        registry={name: expected and f"sha256:{expected}"},
        urls={name: str(address)},
        retry_if_failed=ATTEMPTS - 1,
    )
    folder = (paths.cache() / name).parent
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        files.fetch(name, downloader=bring)


def _copy(source: Path, temporary: str) -> None:
    try:
        file = source.open("rb")
    except OSError as error:
        raise UnavailableError(error.strerror or str(error)) from error
    with file, open(temporary, "wb") as copy:
        shutil.copyfileobj(file, copy)


def _download(url: str, temporary: str, last: bool) -> None:
    """Download once; unless it is the last attempt, an error that may pass is left to pooch."""
    import pooch
    import requests

    log.info("downloading %s", url)
    http = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(), chunk_size=1 << 16, timeout=TIMEOUT
    )
    try:
        http(url, temporary, None)
    except requests.RequestException as error:
        if last or not _may_pass(error):
            raise UnavailableError(_reason(error)) from error
        log.warning("%s: %s; trying again", url, _reason(error))
        raise


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
    return next((text for sign, text in words.items() if sign in str(error)), str(error))


def _check_content(path: Path, name: str) -> None:
    """Refuse what a broken server sends instead of a file; needs no checksum."""
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


def _record(name: str, path: Path, address: str) -> None:
    facts = {"sha256": sha256(path), "bytes": path.stat().st_size, "from": address}
    with replacing(record_of(name)) as temporary:
        temporary.write_text(json.dumps(facts, indent=2) + "\n", "utf-8")
