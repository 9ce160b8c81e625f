"""Whatever is typed, a command ends with exit code 0, or 2 and one sentence; never a traceback.

Random command lines over every key of every group and every option of every command, from a fixed seed:
most in this process, with ``plan=true``, some as a person types them. By hand, more of them:

    PI3NN_LINES=20000 PI3NN_SEED=7 pytest -n 2 tests/cli/test_any_command_line.py
"""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib
import io
import itertools
import os
import re
import signal
import subprocess
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.hydra import Hydra
from hydra.core.config_store import ConfigStore

from pi3nn.errors import on_one_line
from pi3nn.run import forecast
from tests.support import command_lines
from tests.support.commands import command

SEED = int(os.environ.get("PI3NN_SEED", "1"))
LINES = int(os.environ.get("PI3NN_LINES", "2000"))
PARTS = 8  # that several workers share
OF_OTHERS = 400  # lines of the other commands, beside those
REAL = 50
LONGEST = 60.0  # seconds that a line may take
LIBRARY_WORDS = ("Settings'", "could not be converted", "In 'hydra/config'")  # no key, no remedy


class TooLongError(BaseException):
    """Nothing that guards against errors may catch it."""


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
    """What takes long and is not asked about here: probes, composing twice, and parsing YAMLs again
    or copying all schemas each time that it composes."""
    monkeypatch.setattr(forecast, "probe", lambda stack, budget: 1.0)
    monkeypatch.setattr(ConfigStore, "__deepcopy__", lambda self, _: self, raising=False)
    load, loaded = FileConfigSource.load_config, dict[tuple[str, str], Any]()

    def load_once(self: FileConfigSource, config_path: str) -> Any:
        place = (str(Path(self.path).absolute()), config_path)
        if place not in loaded:
            loaded[place] = load(self, config_path)
        return copy.deepcopy(loaded[place])

    monkeypatch.setattr(FileConfigSource, "load_config", load_once)
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


@pytest.mark.parametrize("line", command_lines.FOUND, ids=" ".join)
@pytest.mark.usefixtures("own_folder", "in_this_process")
def test_lines_that_somebody_typed_end_well_or_in_one_sentence(line: list[str]) -> None:
    module, *words = line
    if module == "pi3nn_run":
        words.append("plan=true")
    _none(filter(None, [_problem(module, words)]))


@pytest.mark.usefixtures("own_folder", "in_this_process")
def test_any_line_of_the_other_commands_ends_well_or_in_one_sentence() -> None:
    lines = itertools.islice(command_lines.of_others(SEED), OF_OTHERS)
    _none(filter(None, (_problem(module, line) for module, line in lines)))


@pytest.mark.slow
def test_any_line_as_it_is_typed_ends_well_or_in_one_sentence(own_folder: Path) -> None:
    lines = itertools.islice(command_lines.of_runs_that_train(SEED), REAL)
    problems = []
    for line in lines:
        try:
            done = command("pi3nn_run", own_folder, *line, seconds=LONGEST)
        except subprocess.TimeoutExpired as late:
            problems.append(f"{line}\n{late}")
            continue
        said = _wrong("pi3nn_run", line, done.returncode, done.stdout, done.stderr)
        problems += [said] if said else []
    _none(iter(problems))


def _none(problems: Iterator[str]) -> None:
    found = list(problems)
    assert not found, "\n\n".join([f"{len(found)} lines:", *found])


def _problem(module: str, line: list[str]) -> str:
    """What is wrong with how a command ends, in this process; empty if nothing is."""
    main = importlib.import_module(f"pi3nn.cli.{module}").main
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            with _in_time():
                main(line)
            code: Any = None
        except SystemExit as ended:
            code = ended.code
        except BaseException:
            return f"{line}\n{''.join(traceback.format_exc())}"
    return _wrong(module, line, code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    """Whatever hangs is ended, with a traceback of where it was."""

    def end(*_: object) -> NoReturn:
        raise TooLongError(f"more than {LONGEST:.0f} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _wrong(module: str, line: list[str], code: Any, out: str, err: str) -> str:
    name, said = module.replace("_", "-"), err.strip()
    wrong = []
    if "Traceback" in out + err:
        wrong.append("a traceback")
    wrong += [f"a library's own words ({words})" for words in LIBRARY_WORDS if words in err]
    if code == 2:
        if len(said.splitlines()) != 1 or not said.startswith(f"{name}: "):
            wrong.append("not one sentence")
        if not any(_is_named(word, said) for word in _words(line)):
            wrong.append("it names nothing that was typed")
        if _is_echo(line, said.removeprefix(f"{name}: ")):
            wrong.append("it says nothing but what was typed")
    elif code == 1:
        some_jobs = "-m" in " ".join(line) and " failed:" in said
        if not (some_jobs or {"verify", "sweep"} & set(line)):
            wrong.append("exit code 1")
    elif code != 0:
        wrong.append(f"exit code {code}")
    return f"{line}\n{', '.join(wrong)}: {said}" if wrong else ""


def _words(line: list[str]) -> Iterator[str]:
    """What a sentence may name: keys, options, files; and of what was left out, its name.

    Choices stand at the beginning of most lines: their bare names ("method") say nothing.
    """
    for text in line:
        key, equals, value = text.lstrip("+~").partition("=")
        bare = key.partition("@")[0] in ("method", "dataset", "experiment", "protocol")
        yield from (text, f"{key}=") if bare else (key, key.rpartition(".")[2])
        if not equals or not key or re.search(r"[^\W\d]{3}", value):  # a file; no number is a name
            yield from (on_one_line(value or text),) if text else ("arguments: ;", "''")
        if re.match("-[a-z]", text):
            yield "--"  # by its long name
    yield from ("is missing", "are required", "model=", "data=", "results/runs", "results/paper")


def _is_named(word: str, said: str) -> bool:
    """Whether a word, as a whole, is in what is said."""
    whole = rf"(?<![\w.]){re.escape(word)}(?![\w.]*\w)" if word[-1:].isalnum() else re.escape(word)
    return bool(word) and re.search(whole, said) is not None


def _is_echo(line: list[str], said: str) -> bool:
    """Whether fewer than three words remain where all that was typed is taken away."""
    typed = {part for text in line for part in (text, *text.partition("=")) if part}
    for part in sorted(typed, key=len, reverse=True):
        said = said.replace(part, " ")
    return len(re.findall(r"[^\W\d]{2,}", said)) < 3
