"""A kernel for machines without a compiler: the one that was sent, whole and fit for them, or none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pi3nn.engine import native
from pi3nn.engine.native import build, handed
from pi3nn.engine.shape import Shape
from pi3nn.errors import UserError

SHAPE = Shape(3, 5)


@pytest.fixture
def sent(tmp_path: Path) -> handed.HandedKernel:
    return handed.hand_along(tmp_path)


@pytest.fixture
def without_compiler(
    sent: handed.HandedKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """As on a node: nothing is built there, and nothing was."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PI3NN_CACHE", str(tmp_path / "cache"))
    build._attempt.cache_clear()
    yield
    build.INSTEAD.clear()
    build._attempt.cache_clear()


def test_where_nothing_can_be_built_the_kernel_that_came_along_computes(
    sent: handed.HandedKernel, without_compiler: None
) -> None:
    sent.use()
    assert native.engine_for(SHAPE, "cpu", "native") == "native"
    assert Path(build.library("float")._name) == Path(sent.path)


def test_one_that_is_not_what_was_sent_is_refused_and_torch_is_not_taken_for_it(
    sent: handed.HandedKernel, without_compiler: None
) -> None:
    Path(sent.path).write_bytes(Path(sent.path).read_bytes() + b"!")
    sent.use()
    with pytest.raises(
        UserError, match=r"there is no C\+\+ compiler .* is not the kernel that was"
    ):
        native.engine_for(SHAPE, "cpu", "native")


def test_one_that_others_may_have_written_is_refused(
    sent: handed.HandedKernel, without_compiler: None
) -> None:
    Path(sent.path).chmod(0o777)
    sent.use()
    with pytest.raises(UserError, match="can be written by other users"):
        native.engine_for(SHAPE, "cpu", "native")


def test_one_for_a_processor_that_can_more_is_refused_with_what_is_lacking(
    sent: handed.HandedKernel, without_compiler: None
) -> None:
    replace(sent, needs=sent.needs | {"avx9000"}).use()
    with pytest.raises(UserError, match="is for processors with avx9000"):
        native.engine_for(SHAPE, "cpu", "native")


def test_where_there_is_a_compiler_the_machine_has_its_own(sent: handed.HandedKernel) -> None:
    build._attempt.cache_clear()
    replace(sent, sha256="").use()
    try:
        assert Path(build.library("float")._name) != Path(sent.path)
    finally:
        build.INSTEAD.clear()
        build._attempt.cache_clear()
