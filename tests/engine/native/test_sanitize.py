"""The kernel stays within its memory and within what C++ defines."""

import subprocess
from pathlib import Path

import pytest

from pi3nn.engine.native import build

SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@pytest.fixture(scope="module", params=["float", "double"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sanitize") / "sanitize"
    source = Path(__file__).with_name("sanitize.cpp")
    kept = [flag for flag in build.FLAGS if flag not in ("-O2", "-shared", "-fvisibility=hidden")]
    options = ["-O1", "-g", "-march=native", *kept, *SANITIZERS]
    options += [f'-DKERNEL="{build.SOURCE}"', f"-DREAL={request.param}"]
    command = [*build._compiler(), *options, str(source), "-o", str(made)]
    subprocess.run(command, check=True)
    return made


@pytest.mark.slow
def test_no_call_leaves_its_memory_or_does_what_is_undefined(program: Path) -> None:
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.strip() == "5760 cases"
    assert done.returncode == 0


@pytest.mark.slow
def test_a_buffer_that_is_one_number_short_is_noticed(program: Path) -> None:
    done = subprocess.run([str(program), "short"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr
