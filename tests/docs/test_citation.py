"""CITATION.cff speaks of this version of the package, and of the paper."""

from __future__ import annotations

import tomllib

import yaml

from tests.conftest import REPOSITORY


def test_the_citation_is_of_this_version_and_of_the_paper() -> None:
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert citation["authors"] == project["authors"]
    paper = citation["preferred-citation"]
    assert [author["family-names"] for author in paper["authors"]] == [
        "Liu",
        "Zhang",
        "Lu",
        "Zhang",
    ]
    assert paper["title"].startswith("PI3NN: ")
    assert paper["year"] == 2022
