"""A new method is two files, and so is a new data set: every contract test finds and passes them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.support.blocks import run
from tests.support.checkout import copy_of_checkout

TEMPLATES = REPOSITORY / "docs" / "templates"
FILES = [
    "configs/dataset/my_data.yaml",
    "configs/method/my_method.yaml",
    "pi3nn/data/my_data.py",
    "pi3nn/methods/my_method.py",
]


def test_a_template_is_its_code_and_its_yaml() -> None:
    files = [path.relative_to(TEMPLATES) for path in TEMPLATES.rglob("*.*") if path.is_file()]
    assert sorted(str(path) for path in files if "__pycache__" not in path.parts) == FILES


@pytest.mark.slow
def test_both_templates_in_one_checkout_pass_all_contract_tests(tmp_path: Path) -> None:
    copy_of_checkout(tmp_path)
    for name in FILES:
        shutil.copy2(TEMPLATES / name, tmp_path / name)
    done = run(
        f"{sys.executable} -m pytest -v -m contract -n 0 -p no:cacheprovider tests", tmp_path
    )
    assert done.returncode == 0, done.stdout[-5000:]
    passed = [line for line in done.stdout.splitlines() if " PASSED" in line]
    of_method = [line for line in passed if "my_method" in line]
    of_data = [line for line in passed if "my_data" in line]
    assert len(of_method) > 25, "the tests find the method"
    assert len(of_data) > 5, "the tests find the data set"
    assert len(passed) > 3 * len(of_method + of_data), "those of all others are run beside them"
