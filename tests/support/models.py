"""Models as a run with ``save_model=true`` leaves them, after a training of a second."""

from __future__ import annotations

from pathlib import Path

from pi3nn.run import save
from pi3nn.run.member import Member
from pi3nn.store import Store
from tests.support.runs import composed, run

SHORT: dict[str, list[str]] = {
    "pi3nn": ["method.steps=20", "method.hidden=8"],
    "pi3nn_cross": [
        "method.steps=20",
        "method.hidden=8",
        "method.spread_steps=10",
        "method.spread_hidden=8",
    ],
    "qd": ["method.epochs=3", "method.hidden=8"],
    "piven": ["method.epochs=3", "method.hidden=8"],
    "sqr": ["method.epochs=3", "method.hidden=8"],
    "der": ["method.epochs=3", "method.hidden=8"],
    "cqr": ["method.epochs=3", "method.hidden=8"],
    "linear": [],
}


def trained(folder: Path, method: str = "linear", *overrides: str) -> tuple[list[Member], Store]:
    cfg = composed(
        "experiment=fit", "dataset=yacht", f"method={method}", "levels=[0.8,0.9]", "workers=1",
        f"store={folder / 'runs'}", *SHORT[method], *overrides,
    )  # fmt: skip
    stored, _ = run(cfg)
    store = Store(folder / "runs")
    save.check(stored, folder / "model", cfg.force)
    save.save(stored, store, [0.8, 0.9], folder / "model")
    return stored, store
