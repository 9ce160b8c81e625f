"""One stack: what is stored of each of its members."""

from __future__ import annotations

from pathlib import Path

from pi3nn.run import one_stack
from pi3nn.run.member import members
from pi3nn.store import Store
from tests.support.runs import comparable, composed
from tests.support.runs import run as run_cfg


def test_a_diverging_member_is_a_record_with_its_reason_and_touches_no_other(
    tmp_path: Path,
) -> None:
    rates = "++sweep={method.learning_rate: [0.01, 1.0e+38]}"
    overrides = (
        "dataset=yacht",
        "method.steps=25",
        "method.hidden=8",
        "seeds=[1]",
        "splits=[1]",
        rates,
    )
    run_cfg(composed(*overrides, f"store={tmp_path / 'both'}", "workers=1"))
    rows = {row["method.learning_rate"]: row for row in Store(tmp_path / "both").rows()}
    assert rows[1e38]["status"] == "failed"
    assert "not finite at step" in rows[1e38]["reason"]
    single = (*overrides[:-1], "++sweep={}", "method.learning_rate=0.01")
    run_cfg(composed(*single, f"store={tmp_path / 'one'}", "workers=1"))
    both = comparable(Store(tmp_path / "both"))
    healthy = {place: row for place, row in both.items() if row["status"] == "ok"}
    assert healthy
    assert healthy == comparable(Store(tmp_path / "one"))


def test_a_trained_stack_is_stored_with_labels_weights_and_its_size(tmp_path: Path) -> None:
    planned = members(composed("dataset=yacht", "method=linear", "splits=[1,2]", "seeds=[1]"))
    store, shares = Store(tmp_path), list[float]()
    levels = {member.key: [0.9] for member in planned}
    one_stack.train(planned, lambda share, _: shares.append(share), store, levels, force=False)
    assert shares[-1] == 1.0
    assert store.keys() == sorted(levels)
    for number, member in enumerate(planned, 1):
        result = store.result(member.key)
        assert result["member"]["split"] == number
        assert result["member"]["status"] == "ok"
        assert {row["set"] for row in result["records"]} >= {"train", "test"}
        assert store.config(member.key) == member.config
        assert store.weights(member.key)
        assert store.provenance(member.key)["stack"] == len(planned)


def test_levels_are_added_once_and_the_others_stay(tmp_path: Path) -> None:
    planned = members(composed("dataset=yacht", "method=linear", "splits=[1]", "seeds=[1]"))
    (member,), store = planned, Store(tmp_path)
    one_stack.train(planned, lambda *_: None, store, {member.key: [0.9]}, force=False)
    before = comparable(store)
    for _ in range(2):
        one_stack.add_levels(planned, store, {member.key: [0.8, 0.9]})
    after = comparable(store)
    assert {gamma for _, _, gamma in after} == {0.8, 0.9}
    assert before.items() <= after.items()
    assert "test/lower@0.8" in store.predictions(member.key)
