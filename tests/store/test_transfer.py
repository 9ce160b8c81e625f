"""Members that travel from store to store as bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pi3nn.store import Store, upkeep
from pi3nn.store.packs import NotWholeError, sha256
from pi3nn.store.transfer import receive, send


def written(root: Path, keys: list[str], value: float = 1.0) -> Store:
    store = Store(root)
    with store.together():
        for key in keys:
            result = {
                "member": {"dataset": "boston"},
                "records": [{"set": "test", "gamma": 0.9, "picp": value}],
            }
            store.write(key, {"seed": 1}, result, {"test/y": np.arange(3)}, {"w": np.ones(2)}, {})
    return store


def test_members_arrive_as_they_were_sent(tmp_path: Path) -> None:
    there, here = written(tmp_path / "there", ["a", "b"]), Store(tmp_path / "here")
    receive(here, send(there), ["a", "b", "c"])
    assert here.keys() == ["a", "b"]
    assert here.rows() == there.rows()
    assert here.config("a") == {"seed": 1}
    np.testing.assert_array_equal(here.predictions("b")["test/y"], np.arange(3))
    assert upkeep.verify(here) == upkeep.Findings()


def test_a_member_that_is_here_stays_unless_it_was_to_be_trained_again(tmp_path: Path) -> None:
    there, here = written(tmp_path / "there", ["a", "b"], 2.0), written(tmp_path / "here", ["a"])
    receive(here, send(there), ["a", "b"])
    assert [row["picp"] for row in here.rows()] == [1.0, 2.0]
    receive(here, send(there), ["a", "b"], force=True)
    assert [row["picp"] for row in here.rows()] == [2.0, 2.0]


def test_a_changed_byte_or_a_strange_member_is_refused_and_nothing_stored(tmp_path: Path) -> None:
    there, here = written(tmp_path / "there", ["a", "b"]), Store(tmp_path / "here")
    ((digest, content),) = send(there)
    changed = content[:9] + bytes([content[9] ^ 1]) + content[10:]
    with pytest.raises(NotWholeError, match="not what was sent"):
        receive(here, [(digest, changed)], ["a", "b"])
    with pytest.raises(NotWholeError, match="came damaged"):
        receive(here, [(sha256(changed), changed)], ["a", "b"])
    with pytest.raises(NotWholeError, match="1 members came that were not ordered"):
        receive(here, [(digest, content)], ["a"])
    assert not here.root.exists()
