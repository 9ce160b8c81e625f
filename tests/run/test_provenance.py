"""Where a result came from."""

from __future__ import annotations

import json
import os
import re
from importlib import metadata

from pi3nn.run import provenance
from tests.conftest import REPOSITORY


def test_versions_machine_and_commit_are_noted_and_can_be_stored() -> None:
    facts = provenance.facts()
    assert facts["versions"]["torch"] == metadata.version("torch")
    assert facts["cores"] == os.cpu_count()
    assert facts["cpu"] is not None
    assert {"commit", "dirty", "python", "system", "threads"} <= facts.keys()
    assert json.loads(json.dumps(facts)) == facts
    assert provenance.facts() is facts


def test_in_a_checkout_the_commit_is_noted() -> None:
    if (REPOSITORY / ".git").exists():  # not in a copy of the files alone
        assert re.fullmatch(r"[0-9a-f]{40}", provenance.facts()["commit"])
