"""Whatever is typed, a command ends with exit code 0, or 2 and one sentence; never a traceback.

Random command lines over every key of every group and every option of every command, from a fixed seed:
most in this process, with ``plan=true``, some as a person types them. By hand, more of them:

    PI3NN_LINES=20000 PI3NN_SEED=7 pytest -n 2 tests/cli/test_any_command_line.py
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import itertools
import os
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra._internal.hydra import Hydra

from pi3nn.run import forecast
from tests.support import command_lines
from tests.support.commands import command

SEED = int(os.environ.get("PI3NN_SEED", "1"))
LINES = int(os.environ.get("PI3NN_LINES", "2000"))
PARTS = 8  # that several workers share
OF_OTHERS = 400  # lines of the other commands, beside those
REAL = 50
LONGEST = 60.0  # seconds that a line may take


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, files that are none, and nothing of an earlier line."""
    rows = [f"{i},{i * i % 7},{i % 11}" for i in range(120)]
    (tmp_path / "own.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    (tmp_path / "own.txt").write_text("no table")
    (tmp_path / "empty.csv").touch()
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes long and is not asked about here: probes, and composing twice."""
    monkeypatch.setattr(forecast, "probe", lambda stack, budget: 1.0)
    monkeypatch.setattr(gc, "freeze", lambda: None)  # a process that goes on needs its memory back
    mode = Hydra.get_mode

    def mode_if_typed(self: Any, config_name: Any, overrides: list[str]) -> Any:
        typed = any("hydra" in text and "mode" in text for text in overrides)
        return mode(self, config_name, overrides) if typed else None

    monkeypatch.setattr(Hydra, "get_mode", mode_if_typed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.usefixtures("own_folder", "in_this_process")
def test_any_line_of_pi3nn_run_ends_well_or_in_one_sentence(part: int) -> None:
    lines = command_lines.of_run(SEED * 1000 + part)
    typed = ([*line, "plan=true"] for line in itertools.islice(lines, LINES // PARTS))
    _none(filter(None, (_problem("pi3nn_run", line) for line in typed)))


@pytest.mark.usefixtures("own_folder", "in_this_process")
def test_any_line_of_the_other_commands_ends_well_or_in_one_sentence() -> None:
    lines = itertools.islice(command_lines.of_others(SEED), OF_OTHERS)
    _none(filter(None, (_problem(module, line) for module, line in lines)))


@pytest.mark.slow
def test_any_line_as_it_is_typed_ends_well_or_in_one_sentence(own_folder: Path) -> None:
    lines = itertools.islice(command_lines.of_runs_that_train(SEED), REAL)
    problems = []
    for line in lines:
        started = time.monotonic()
        done = command("pi3nn_run", own_folder, *line)
        seconds = time.monotonic() - started
        said = _wrong("pi3nn_run", line, done.returncode, done.stdout, done.stderr, seconds)
        problems += [said] if said else []
    _none(iter(problems))


def _none(problems: Iterator[str]) -> None:
    found = list(problems)
    assert not found, "\n\n".join([f"{len(found)} lines:", *found])


def _problem(module: str, line: list[str]) -> str:
    """What is wrong with how a command ends, in this process; empty if nothing is."""
    main = importlib.import_module(f"pi3nn.cli.{module}").main
    out, err, started = io.StringIO(), io.StringIO(), time.monotonic()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(line)
            code: Any = None
        except SystemExit as ended:
            code = ended.code
        except BaseException:
            return f"{line}\n{''.join(traceback.format_exc())}"
    return _wrong(module, line, code, out.getvalue(), err.getvalue(), time.monotonic() - started)


def _wrong(module: str, line: list[str], code: Any, out: str, err: str, seconds: float) -> str:
    name, said = module.replace("_", "-"), err.strip()
    wrong = []
    if "Traceback" in out + err:
        wrong.append("a traceback")
    if seconds > LONGEST:
        wrong.append(f"{seconds:.0f} s")
    if code == 2:
        if len(said.splitlines()) != 1 or not said.startswith(f"{name}: "):
            wrong.append("not one sentence")
        if not any(word in said for word in _words(line)):
            wrong.append("it names nothing that was typed")
    elif code == 1:
        some_jobs = "-m" in " ".join(line) and " failed:" in said
        if not (some_jobs or "verify" in line):
            wrong.append("exit code 1")
    elif code != 0:
        wrong.append(f"exit code {code}")
    return f"{line}\n{', '.join(wrong)}: {said}" if wrong else ""


def _words(line: list[str]) -> Iterator[str]:
    """What a sentence may name: keys, values, options; and of keys that were left out, theirs."""
    for text in line:
        key, _, value = text.lstrip("+~").partition("=")
        yield from (word for word in (key, key.rpartition(".")[2], value) if word)
    yield from ("is missing", "are required", "model", "--", "results/runs", "results/paper")
