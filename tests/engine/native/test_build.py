"""The kernel is built once, safely, by whoever needs it first; without it PyTorch does the work."""

import ctypes
import logging
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from pi3nn.engine import native
from pi3nn.engine.native import build
from pi3nn.engine.shape import Shape
from pi3nn.errors import UserError

SHAPE = Shape(3, 5)


STUB = """extern "C" {
#define PUBLIC __attribute__((visibility("default")))
PUBLIC long pi3nn_forward() { return 0; }
PUBLIC long pi3nn_backward() { return 0; }
PUBLIC long pi3nn_loss_and_gradient() { return 0; }
PUBLIC long pi3nn_optimise() { return 0; }
PUBLIC long pi3nn_apply() { return 0; }
PUBLIC long pi3nn_make_steps() { return 0; }
PUBLIC long pi3nn_masks() { return 0; }
PUBLIC long pi3nn_vector_bytes() { return 16; }
}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A fresh cache, a source that is built at once, nothing remembered from before or left."""
    monkeypatch.setenv("PI3NN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "stub.cpp").write_text(STUB)
    monkeypatch.setattr(build, "SOURCE", tmp_path / "stub.cpp")
    build._attempt.cache_clear()
    native._warn_once.cache_clear()
    yield
    build._attempt.cache_clear()
    native._warn_once.cache_clear()


def kernel(engine: str = "auto", shape: Shape = SHAPE) -> native.Kernel | None:
    return native.kernel_for(shape, torch.float32, "cpu", engine)


def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "native"


def test_a_build_leaves_a_library_and_its_record_for_the_user_alone(tmp_path: Path) -> None:
    assert kernel() is not None
    (built,) = folder(tmp_path).iterdir()
    for path in (folder(tmp_path), built, *built.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert sorted(path.name for path in built.iterdir()) == ["library.so", "sha256"]


def test_what_is_built_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel()
    build._attempt.cache_clear()
    monkeypatch.setattr(build, "_build", None)
    assert kernel() is not None


@pytest.mark.parametrize("what", ["source", "compiler", "processor"])
def test_another_source_compiler_or_processor_is_another_build(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel()
    build._attempt.cache_clear()
    if what == "source":
        build.SOURCE.write_text(STUB + "// changed\n")
    elif what == "compiler":
        monkeypatch.setenv("CXX", "c++ -g0")
    else:
        monkeypatch.setattr(build, "_processor", lambda: "another one")
    assert kernel() is not None
    assert len(list(folder(tmp_path).iterdir())) == 2


def test_processes_that_build_the_kernel_at_once_all_succeed(tmp_path: Path) -> None:
    program = (
        "import torch; from pi3nn.engine import native; from pi3nn.engine.native import build;"
        "from pi3nn.engine.shape import Shape; build.FLAGS[0] = '-O0';"
        "k = native.kernel_for(Shape(1, 2), torch.float32, 'cpu', 'native');"
        "print(k.forward(torch.ones(1, 32), native.StepRows(torch.ones(1, 1, 1))).item())"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [process.communicate()[0].strip() for process in running] == ["5.0"] * 4
    assert len(list(folder(tmp_path).iterdir())) == 1


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o702])
def test_a_folder_that_others_may_write_to_is_refused(
    mode: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder(tmp_path).mkdir(parents=True)
    folder(tmp_path).chmod(mode)
    with caplog.at_level(logging.WARNING, "pi3nn"):
        assert kernel() is None
        assert kernel() is None
    assert [r.message for r in caplog.records if "written by other users" in r.message]
    assert len(caplog.records) == 1
    assert not list(folder(tmp_path).iterdir())


def test_a_folder_that_others_may_exchange_is_refused(tmp_path: Path) -> None:
    cache = folder(tmp_path).parent
    cache.mkdir()
    for mode, fine in ((0o777, False), (0o1777, True), (0o775, True)):
        for above in (cache, tmp_path):
            above.chmod(mode)
            if fine:
                assert build._private_folder(folder(tmp_path)).is_dir()
            else:
                with pytest.raises(
                    build.Unavailable, match=f"may write to {above}: set PI3NN_CACHE"
                ):
                    build._private_folder(folder(tmp_path))
            above.chmod(0o700)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners exist on POSIX only")
def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(tmp_path).mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: folder(tmp_path).stat().st_uid + 1)
    with pytest.raises(UserError, match="another user"):
        kernel("native")


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder(tmp_path).parent.mkdir()
    folder(tmp_path).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="link"):
        kernel("native")


def spoil(built: Path, how: str) -> None:
    """Do to a built library what must not be believed."""
    library, record = built / "library.so", built / "sha256"
    whole = library.read_bytes()
    if how in ("a flipped byte", "cut off", "another library"):
        library.unlink()  # this process runs in the old one
    if how == "a flipped byte":
        middle = len(whole) // 2
        library.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    elif how == "cut off":
        library.write_bytes(whole[:100])
    elif how == "another library":
        library.write_bytes(b"not what was built")
    elif how == "a link":
        library.rename(built / "elsewhere")
        library.symlink_to(built / "elsewhere")
    elif how == "others may write it":
        library.chmod(0o722)
    elif how == "others may write beside it":
        built.chmod(0o777)
    elif how == "without a record":
        record.unlink()
    elif how == "a record that is no text":
        record.write_bytes(b"\xff\xfe")
    elif how == "a file instead":
        for path in (library, record):
            path.unlink()
        built.rmdir()
        built.write_bytes(b"")


@pytest.mark.parametrize(
    "how",
    [
        "a flipped byte", "cut off", "another library", "a link", "others may write it",
        "others may write beside it", "without a record", "a record that is no text", "a file instead",
    ],
)  # fmt: skip
def test_a_planted_or_damaged_library_is_built_again_and_never_loaded(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel()
    (built,) = folder(tmp_path).iterdir()
    whole = (built / "library.so").read_bytes()
    spoil(built, how)
    build._attempt.cache_clear()
    loaded: list[bytes] = []
    load = ctypes.CDLL
    monkeypatch.setattr(
        build.ctypes, "CDLL", lambda path: loaded.append(Path(path).read_bytes()) or load(path)
    )
    assert kernel("native") is not None
    assert loaded == [whole]
    assert [path.name for path in folder(tmp_path).iterdir()] == [built.name]
    assert sorted(path.name for path in built.iterdir()) == ["library.so", "sha256"]


def test_a_library_copied_from_another_processor_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache that is shared or copied between machines: even under the right name it is not taken."""
    own_processor = build._processor
    monkeypatch.setattr(build, "_processor", lambda: "another one")
    kernel()
    (theirs,) = folder(tmp_path).iterdir()
    monkeypatch.setattr(build, "_processor", own_processor)
    build._attempt.cache_clear()
    kernel()
    (ours,) = (path for path in folder(tmp_path).iterdir() if path != theirs)
    record = (ours / "sha256").read_text()
    shutil.rmtree(ours)
    shutil.copytree(theirs, ours)
    build._attempt.cache_clear()
    assert kernel("native") is not None
    assert (ours / "sha256").read_text() == record


def test_a_lesser_instruction_set_has_a_library_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel()
    (full,) = folder(tmp_path).iterdir()
    for name in build.LESSER:
        monkeypatch.setenv("PI3NN_ISA", name)
        build._attempt.cache_clear()
        assert kernel("native") is not None
        lesser = [path for path in folder(tmp_path).iterdir() if path != full]
        assert len(lesser) == 1
        record = (lesser[0] / "sha256").read_text()
        shutil.rmtree(lesser[0])
        shutil.copytree(full, lesser[0])  # what a fuller processor built, under this name
        build._attempt.cache_clear()
        assert kernel("native") is not None
        assert (lesser[0] / "sha256").read_text() == record
        shutil.rmtree(lesser[0])


def test_a_library_that_cannot_be_loaded_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise OSError("no such instruction")

    monkeypatch.setattr(build.ctypes, "CDLL", refuse)
    with pytest.raises(UserError, match="cannot be loaded"):
        kernel("native")


def test_a_build_that_was_killed_is_cleared_by_the_next(tmp_path: Path) -> None:
    name = "from pi3nn import atomic; print(atomic.temporary_name('kernel'))"
    done = subprocess.run([sys.executable, "-c", name], capture_output=True, text=True, check=True)
    left = folder(tmp_path) / done.stdout.strip()
    left.mkdir(parents=True)
    folder(tmp_path).chmod(0o700)
    (left / "library.so").touch()
    kernel()
    assert not left.exists()


@pytest.mark.parametrize("compiler", ["/bin/false", "no-such-compiler"])
def test_without_a_compiler_torch_is_used_and_the_log_says_so_once(
    compiler: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv("CXX", compiler)
    with caplog.at_level(logging.WARNING, "pi3nn"):
        assert kernel() is None
        assert kernel() is None
    (said,) = [record.message for record in caplog.records]
    assert compiler in said
    assert "up to 24 times as long" in said
    assert "what a seed gives is not what it gives with the native one" in said
    with pytest.raises(UserError, match="engine=native"):
        kernel("native")


def test_a_failed_build_is_not_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    broken = tmp_path / "compiler"
    broken.write_text(f"#!/bin/sh\necho called >> {calls}\nexit 1\n")
    broken.chmod(0o700)
    monkeypatch.setenv("CXX", str(broken))
    assert kernel() is None
    tries = calls.read_text()
    assert kernel() is None
    assert calls.read_text() == tries


def test_no_compiler_at_all_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="no C\\+\\+ compiler"):
        kernel("native")


def test_networks_that_are_not_covered_go_to_torch(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "pi3nn"):
        assert kernel(shape=Shape(3, 5, layers=2)) is None
        assert native.kernel_for(SHAPE, torch.float32, "meta", "auto") is None
        assert native.kernel_for(SHAPE, torch.float16, "cpu", "auto") is None
    messages = " ".join(record.message for record in caplog.records)
    assert "2" in messages
    assert "meta" in messages
    assert "float16" in messages


def test_engines_are_three() -> None:
    assert kernel("torch") is None
    with pytest.raises(UserError, match="auto, native, torch"):
        kernel("fast")


def test_who_computes_is_known_without_a_network(
    tmp_path: Path,
) -> None:
    assert native.engine_for(SHAPE, "cpu", "torch") == "torch"
    assert native.engine_for(Shape(3, 5, layers=2), "cpu", "auto") == "torch"
    assert not folder(tmp_path).exists(), "nothing was built for what the kernel does not serve"
    assert native.engine_for(SHAPE, "cpu", "auto") == "native"
    (built,) = folder(tmp_path).iterdir()
    time_of_build = built.stat().st_mtime_ns
    build._attempt.cache_clear()
    assert native.engine_for(SHAPE, "cpu", "native") == "native"
    assert built.stat().st_mtime_ns == time_of_build


def test_who_computes_is_torch_where_the_kernel_cannot_be_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CXX", "/bin/false")
    assert native.engine_for(SHAPE, "cpu", "auto") == "torch"
    with pytest.raises(UserError, match="engine=native"):
        native.engine_for(SHAPE, "cpu", "native")
