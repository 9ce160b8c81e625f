"""Orders and answers: a stack trained elsewhere is the same stack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import pi3nn
from pi3nn import data
from pi3nn.errors import UserError
from pi3nn.run import away, member
from pi3nn.run.away import Errands, Order
from pi3nn.run.execute import Wanted
from pi3nn.run.member import Member, members
from pi3nn.run.workers import TrainingOptions
from pi3nn.store import Store
from tests.support.runs import comparable, composed, run
from tests.support.tables import homes

SMALL = ["splits=[1,2]", "seeds=[1]", "method.steps=20", "method.hidden=8", "workers=1"]


def errands(planned: list[Member], store: Path, parts: int = 1) -> Errands:
    wanted = Wanted(planned, Store(store), {m.key: [0.95] for m in planned})
    return Errands(wanted, TrainingOptions(), parts, store / "stop")


def fulfilled(asked: Errands, order: Order) -> dict[str, Any]:
    return away.fulfil(order.text, asked.datasets().__getitem__)


def test_what_comes_back_is_what_a_run_here_stores(tmp_path: Path) -> None:
    planned, _ = run(composed("dataset=yacht", *SMALL, f"store={tmp_path / 'here'}"))
    asked = errands(planned, tmp_path / "away", parts=2)
    orders = asked.orders(cpus=1)
    assert [len(order.keys) for order in orders] == [1, 1]
    for order in orders:
        asked.accept(order, fulfilled(asked, order))
    assert asked.failures == {}
    assert comparable(Store(tmp_path / "away")) == comparable(Store(tmp_path / "here"))


def test_orders_have_every_member_once_the_longest_first_some_for_each_cpu(tmp_path: Path) -> None:
    some = ["seeds=[1]", "splits=[1,2,3,4,5,6]"]
    yachts = members(composed("dataset=yacht", *some))
    planned = [*yachts, *members(composed("dataset=kin8nm", *some))]
    orders = errands(planned, tmp_path, parts=0).orders(cpus=2)
    assert sorted(key for order in orders for key in order.keys) == sorted(m.key for m in planned)
    assert len(orders) >= 2 * away.STACKS_PER_CPU
    names = [json.loads(o.text)["members"][0]["config"]["dataset"]["name"] for o in orders]
    assert names == sorted(names)  # kin8nm has thirty times the rows
    assert all(order.memory > 0.4 for order in orders)
    wider = errands(planned, tmp_path, parts=1).orders(cpus=2)
    assert max(order.memory for order in wider) > max(order.memory for order in orders)


def test_bundled_and_generated_sets_stay_and_others_travel(tmp_path: Path) -> None:
    homes(100).to_csv(tmp_path / "homes.csv", index=False)
    own = {"path": str(tmp_path / "homes.csv"), "target": "price"}
    for name in data.ready():
        with_package = name not in ("flight", "quigley", "rock", "streamflow")
        assert data.comes_along(vars(data.settings(name))) == with_package, name
    assert not data.comes_along(vars(data.settings("table", **own)))


def own_table(folder: Path) -> list[Member]:
    table = folder / "homes.csv"
    homes(100).to_csv(table, index=False)
    own = [f"dataset.path={table}", "dataset.target=price", "method=pi3nn", "calibrate=none"]
    return members(composed("dataset=table", *own, *SMALL))


def forget_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process on another machine."""
    for cached in (member._loaded, member._split, member._fingerprint):
        cached.cache_clear()
    away._unpacked.clear()
    monkeypatch.setattr(member, "_brought", {})


def test_a_users_table_travels_and_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = errands(own_table(tmp_path), tmp_path / "away")
    (order,) = asked.orders(cpus=1)
    (digest,) = order.data
    content = asked.datasets()[digest]
    (tmp_path / "homes.csv").unlink()
    forget_data(monkeypatch)
    answer = away.fulfil(order.text, lambda _: content[:-1] + b"?")
    assert answer == {"refused": "a data set came with another SHA-256 than it was sent with"}
    fetched: list[str] = []
    for _ in range(2):  # a second order on the same data fetches nothing
        answer = away.fulfil(order.text, lambda name: fetched.append(name) or content)  # type: ignore[func-returns-value]
        asked.accept(order, answer)
    assert fetched == [digest]
    assert set(asked.missing.store.keys()) == set(order.keys)


def test_a_node_whose_data_are_others_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = members(composed("dataset=yacht", *SMALL))
    (order,) = errands(planned, tmp_path).orders(cpus=1)
    monkeypatch.setattr(member, "_fingerprint", lambda settings, split: "another")
    answer = away.fulfil(order.text, {}.__getitem__)
    assert "it would train other members of dataset=yacht" in answer["refused"]


def test_a_node_without_a_compiler_refuses_what_the_kernel_is_to_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = members(composed("dataset=yacht", "engine=native", *SMALL))
    (order,) = errands(planned, tmp_path).orders(cpus=1)

    def none(*_: object) -> str:
        raise UserError("engine=native: there is no C++ compiler")

    monkeypatch.setattr(member, "engine_for", none)
    assert away.fulfil(order.text, {}.__getitem__) == {
        "refused": "engine=native: there is no C++ compiler"
    }


def test_what_is_not_as_it_was_sent_has_failed_and_is_not_stored(tmp_path: Path) -> None:
    asked = errands(members(composed("dataset=yacht", *SMALL)), tmp_path / "away")
    (order,) = asked.orders(cpus=1)
    asked.accept(order, {"files": [("0" * 64, b"?")], "failures": {}})
    assert set(asked.failures) == set(order.keys)
    assert not asked.missing.store.keys()


def test_an_order_says_the_version(tmp_path: Path) -> None:
    (order,) = errands(members(composed("dataset=yacht", *SMALL)), tmp_path).orders(cpus=1)
    assert json.loads(order.text)["version"] == pi3nn.__version__
