"""Every command and code block of README and docs works."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser

from pi3nn import config
from pi3nn.cli import overrides as typed
from pi3nn.run.space import Space
from tests.conftest import REPOSITORY
from tests.support.blocks import LANGUAGES, PAGES, Block, affordable, blocks, run
from tests.support.checkout import copy_of_checkout

BLOCKS = [block for page in PAGES for block in blocks(page)]
ERRORS = REPOSITORY / "docs" / "errors.md"  # its commands must fail: test_errors.py
EXTENDING = REPOSITORY / "docs" / "extending.md"  # its commands change the checkout
CLUSTER = REPOSITORY / "docs" / "cluster.md"  # its commands need one: test_cluster.py
IN_A_CLONE = (EXTENDING, REPOSITORY / "docs" / "ten-minutes.md")  # they read what is committed
OWN_YAMLS = REPOSITORY / "docs" / "own-yamls.md"  # its commands need the YAMLs of the page
README = REPOSITORY / "README.md"
KEYS = REPOSITORY / "docs" / "keys.md"  # made when the site is built: test_site.py
COMMANDS = [
    (block, command)
    for block in BLOCKS
    if block.language == "console" and block.page != ERRORS
    for command in block.commands
]
every_page = pytest.mark.parametrize(
    "page",
    [
        page
        for page in PAGES
        if page not in (ERRORS, CLUSTER) and any(b.page == page for b, _ in COMMANDS)
    ],
    ids=lambda page: str(page.relative_to(REPOSITORY)),
)


def test_every_block_has_a_language_that_says_how_it_is_checked() -> None:
    unknown = [f"{b}: '{b.language}'" for b in BLOCKS if b.language not in LANGUAGES]
    assert not unknown, f"must be one of {LANGUAGES}"
    assert {block.language for block in BLOCKS} == set(LANGUAGES)


def test_no_block_is_indented_instead_of_fenced() -> None:
    """Such a block has no language: nobody would run it."""
    for page in PAGES:
        text = re.sub(r"^\s*```.*?^\s*```", "", page.read_text("utf-8"), flags=re.S | re.M)
        assert not re.search(r"(?:^|\n)\n    \S", text), page.name


def test_yaml_blocks_can_be_read() -> None:
    for block in BLOCKS:
        if block.language == "yaml":
            assert isinstance(yaml.safe_load(block.text), dict), str(block)


@pytest.mark.parametrize(
    "command",
    [c for b, c in COMMANDS if c.startswith("pi3nn-run") and b.page not in (EXTENDING, OWN_YAMLS)],
)
def test_every_run_command_composes_and_passes_the_checks(command: str) -> None:
    """Of a sweep, the first job; what is Hydra's own is left to the slow test."""
    kept = ("hydra/sweeper=search",)  # with which intervals may stand
    _, *arguments = [
        a for a in shlex.split(command) if a in kept or not a.startswith(("-", "hydra"))
    ]
    overrides = [_first(a) for a in typed.as_hydra_wants(arguments) if not a.startswith("hydra")]
    cfg = config.composed(*overrides)
    config.settle_sweep(cfg, overrides)
    config.check(cfg)


def _first(override: str) -> str:
    parsed = OverridesParser.create().parse_override(override)
    if not parsed.is_sweep_override():
        return override
    space = Space.of([parsed])
    return space.overrides(space.first)[0]


def test_make_knows_every_target_and_pip_every_extra_that_is_named() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", text, flags=re.M):
            assert re.search(rf"^{target}:", makefile, flags=re.M), f"{page.name}: make {target}"
        for extras in re.findall(r"pip install '[\w.]*\[([\w,]+)\]'", text):
            assert set(extras.split(",")) <= set(project["optional-dependencies"]), page.name


def test_every_link_and_picture_exists() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" in target or (page != README and (page.parent / target).resolve() == KEYS):
                continue
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.slow
@every_page
def test_every_command_and_python_block_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """In one folder and in their order: later ones read what earlier ones left, and nothing else."""
    folder = tmp_path / "work"
    if page in IN_A_CLONE:
        copy_of_checkout(folder)
    else:
        folder.mkdir()
    for block in blocks(page):
        for command in commands(block, folder):
            done = run(command, folder)
            said = f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
            assert done.returncode == 0, f"{block}: {command}\n{said}"


def commands(block: Block, folder: Path) -> list[str]:
    """What to run for a block; Python goes into a file of `folder` first, and so does a YAML that begins
    with the name of its own."""
    named = re.search(r"^# (my/\S+\.yaml)$", block.text, flags=re.M)
    if block.language == "yaml" and named:
        (folder / named[1]).parent.mkdir(parents=True, exist_ok=True)
        (folder / named[1]).write_text(block.text, encoding="utf-8")
    if block.language == "python":
        (folder / "block.py").write_text(block.text, encoding="utf-8")
        return [f"{sys.executable} block.py"]
    if block.language == "console":  # pip would install: the test of extras stands for it
        return [affordable(c) for c in block.commands if not c.startswith("pip install")]
    return []
