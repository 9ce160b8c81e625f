"""Loss curves: kept by every method that trains networks, the same for any stack, and drawn."""

import itertools
from pathlib import Path

import pytest

from pi3nn.engine.curves import STEPS
from pi3nn.results import loss_curves
from pi3nn.results.loss_curves import Losses
from pi3nn.store import Store
from tests.support.commands import pi3nn_run

QUICK = ("dataset=yacht", "splits=1", "seeds=1", "method.hidden=8", "workers=1")
NETWORKS = {
    ("method=pi3nn", "method.steps=30"): ["f", "u", "l"],
    ("method=qd", "method.epochs=20", "levels=[0.9]"): ["network"],
    ("method=sqr", "method.epochs=2", "calibrate=cross", "folds=3"): ["network"],
    ("method=pi3nn_cross", "method.steps=30", "method.spread_steps=10"): [
        "mean/plain", "mean/coded", "spread/quantiles", "spread/scale",
    ],
}  # fmt: skip


@pytest.mark.parametrize("overrides", NETWORKS)
def test_members_keep_the_losses_of_their_networks(
    overrides: tuple[str, ...], tmp_path: Path
) -> None:
    done = pi3nn_run(tmp_path, *QUICK, "sweep={}", *overrides)
    assert done.returncode == 0, done.stderr
    store = Store(tmp_path / "results" / "runs")
    found = loss_curves.losses(store, list(store.keys()))
    assert list(found.networks) == NETWORKS[overrides]
    for curve in itertools.chain(*found.networks.values()):
        assert len(curve) > 5
        assert min(curve) < curve[0]
    assert found.steps == list(STEPS[: len(found.steps)])


def test_older_members_have_none(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert not loss_curves.losses(store, [])


def test_lines_are_the_losses_and_the_thick_one_their_median() -> None:
    found = Losses([1, 2, 3], {"f": [[4.0, 2.0, 1.0], [6.0, 4.0], [8.0, 3.0, 0.0]]})
    drawn = loss_curves.figure(found)
    (ax,) = drawn.axes
    *members, median = [list(line.get_ydata()) for line in ax.get_lines()]
    assert members[0] == [4.0, 2.0, 1.0]
    assert median == [6.0, 3.0, 0.5]
    assert "3 members" in loss_curves.caption(found)
