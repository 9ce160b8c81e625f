"""The templates pass the contract tests as they are."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.docs.blocks import run
from tests.docs.test_blocks import copy_of_checkout

TEMPLATES = REPOSITORY / "docs" / "templates"


def test_templates_copied_into_place_pass_the_contract_tests(tmp_path: Path) -> None:
    copy_of_checkout(tmp_path)
    for folder in ("pi3nn", "configs"):
        shutil.copytree(TEMPLATES / folder, tmp_path / folder, dirs_exist_ok=True)
    names = sorted(path.stem for path in (TEMPLATES / "pi3nn").rglob("*.py"))
    assert names == ["my_data", "my_method"]
    tests = "tests/methods/test_contract.py tests/data/test_contract.py tests/config/test_config.py"
    done = run(
        f"{sys.executable} -m pytest -q -p no:cacheprovider {tests} -k '{' or '.join(names)}'",
        tmp_path,
    )
    assert done.returncode == 0, done.stdout
    passed = int(done.stdout.rsplit(" passed", 1)[0].split()[-1])
    assert passed > 30, "both are found by the tests"
