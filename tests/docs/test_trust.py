"""The page of promises names tests that there are."""

from __future__ import annotations

import re

from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "trust.md").read_text(encoding="utf-8")
PROMISES = [
    line.split("|")[1:-1] for line in PAGE.splitlines() if re.match(r"\| (?!promise)[^-]", line)
]


def test_every_promise_names_the_file_that_tests_it() -> None:
    assert len(PROMISES) > 20
    for promise, tests, found in PROMISES:
        files = re.findall(r"`([\w/]+\.py)`", tests)
        assert files, promise
        for file in files:
            assert (REPOSITORY / "tests" / file).is_file(), f"{promise}: there is no tests/{file}"
        assert re.search("held|mended", found), promise


def test_what_is_not_promised_is_said() -> None:
    assert "\n## What is not promised\n" in PAGE
