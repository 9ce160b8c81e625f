"""A sweep for Ray where there is none: one sentence, exit code 2, and nothing is trained."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from hydra_plugins.pi3nn_ray_launcher import _cluster
from pi3nn.errors import UserError
from pi3nn.store import Store
from tests.support.runs import in_folder

SWEEP = (
    "-m", "dataset=yacht", "method=linear", "splits=1", "seeds=1", "workers=1", "hydra/launcher=ray",
)  # fmt: skip


def refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """What the command says."""
    assert in_folder(folder, monkeypatch)(*SWEEP) == 2
    assert not Store(folder / "results" / "runs").keys()
    lines = [line for line in capsys.readouterr().err.splitlines() if "pi3nn-run: " in line]
    (line,) = lines
    return line.rpartition("pi3nn-run: ")[2]


def test_a_cluster_where_nobody_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:  # bound, and not listening: nobody else comes there meanwhile
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", address)
        said = refused(tmp_path, monkeypatch, capsys)
    assert said.startswith(f"the Ray cluster at RAY_ADDRESS={address} can't be reached (")
    assert "Connection refused" in said
    assert said.endswith("): nothing was trained, what is stored is kept")


def test_without_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, _cluster.__name__)
    monkeypatch.delattr(sys.modules[_cluster.__package__], "_cluster")  # type: ignore[arg-type]
    said = refused(tmp_path, monkeypatch, capsys)
    assert said.startswith("hydra/launcher=ray needs Ray (")
    assert said.endswith("): pip install 'pi3nn[ray]'")


@pytest.mark.parametrize("error", [RuntimeError("no\n GCS"), SystemExit(1), ConnectionError("no")])
@pytest.mark.parametrize("address", ["", "auto"])
def test_whatever_ray_does_where_it_waits_in_vain(
    error: BaseException, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setenv("RAY_ADDRESS", address)
    monkeypatch.setattr(_cluster.ray, "init", init)
    where = (
        "at RAY_ADDRESS=auto can't be reached" if address else "can't be started on this machine"
    )
    with pytest.raises(UserError, match=where) as refusal, _cluster._connected(1):
        pass
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        ("10.0.0.1:6379", ("10.0.0.1", 6379)),
        ("ray://head:10001", ("head", 10001)),
        ("auto", None),
        ("local", None),
    ],
)
def test_who_is_asked_before_ray_is(
    address: str, asked: tuple[str, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[str, int]] = []

    def connect(place: tuple[str, int], timeout: float) -> socket.socket:
        found.append(place)
        return socket.socket()

    monkeypatch.setattr(socket, "create_connection", connect)
    _cluster._knock(address)
    assert found == ([asked] if asked else [])
