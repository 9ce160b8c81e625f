"""The page of promises names tests that there are."""

from __future__ import annotations

import re

from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "trust.md").read_text(encoding="utf-8")
PROMISES = [
    line.split("|")[1:-1] for line in PAGE.splitlines() if re.match(r"\| (?!promise)[^-]", line)
]


def test_every_promise_names_the_tests_that_hold_it() -> None:
    assert len(PROMISES) > 20
    for promise, tests, found in PROMISES:
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", tests)
        assert len(named) == tests.count("`") / 2 > 0, f"{promise}: file.py::test, not {tests}"
        for file, test in named:
            source = (REPOSITORY / "tests" / file).read_text(encoding="utf-8")
            assert f"\ndef {test}(" in source, f"{promise}: tests/{file} has no {test}"
            assert test.startswith("test_"), f"{promise}: {test} is run by nobody"
        assert re.search("held|mended", found), promise


def test_what_is_not_promised_is_said() -> None:
    assert "\n## What is not promised\n" in PAGE
