"""The kernel gives the same numbers whatever the width of the processor's vectors."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from pi3nn.engine.native import build
from tests.conftest import REPOSITORY

FUSED = ("AVX-512", "AVX2")  # those that multiply and add in one step
on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="not an x86 processor")


def digests(folder: Path, isa: str) -> list[str]:
    """What tests/support/digests.py prints of a kernel built for an instruction set."""
    environment = {**os.environ, "PI3NN_ISA": isa, "PI3NN_CACHE": str(folder)}
    command = [sys.executable, "-m", "tests.support.digests"]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.slow
@on_x86
def test_avx2_and_what_else_the_processor_has_give_the_same_bits(tmp_path: Path) -> None:
    """With every loss, in both precisions, with penalties, dropout, front layers, batches, AdamW."""
    (used, *numbers), (lesser, *of_lesser) = digests(tmp_path, ""), digests(tmp_path, "avx2")
    if used not in FUSED:
        pytest.skip("the processor has no AVX2")
    assert lesser == "AVX2"
    assert len(numbers) == 90
    assert of_lesser == numbers


@pytest.mark.slow
@on_x86
def test_without_fused_multiplication_numbers_differ(tmp_path: Path) -> None:
    """Else the digests would be blind."""
    (used, *numbers), (lesser, *of_lesser) = digests(tmp_path, "avx2"), digests(tmp_path, "sse")
    assert (used, lesser) == ("AVX2", "vectors of 16 bytes")
    assert all(a != b for a, b in zip(numbers, of_lesser, strict=True))


def test_an_instruction_set_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI3NN_ISA", "avx3")
    with pytest.raises(build.Unavailable, match="PI3NN_ISA=avx3 is not one of avx2, sse"):
        build._machine()
