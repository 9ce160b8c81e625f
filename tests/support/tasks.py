"""Tasks of the paper that are trained within a second, and what exporting them leaves."""

from __future__ import annotations

from pathlib import Path

from pi3nn.paper import exports
from pi3nn.paper.tasks import Task
from pi3nn.run import reproduce
from pi3nn.store import Store

FEW = ("dataset.rows=120", "dataset.test_rows=40", "dataset.ood_rows=30", "method.hidden=4")
CHEAP = {"pi3nn": "method.steps=10", "pi3nn_no_ood": "method.steps=10"}


def small(experiment: str, method: str, *more: str, dataset: str = "") -> Task:
    """A task that is trained within a second."""
    overrides = (*more, CHEAP.get(method, "method.epochs=1"), "workers=1")
    return Task(experiment, dataset or experiment, method, "paper", "full", overrides)


YACHT = small("uci", "pi3nn", "splits=[1]", "seeds=[1,2]", dataset="yacht")
EXPERIMENTS = {
    "cubic1d": [small("cubic1d", m, "seeds=[1,2]", *FEW) for m in ("pi3nn", "pi3nn_no_ood", "qd")],
    "cubic10d": [small("cubic10d", m, "seeds=[1,2]", *FEW) for m in ("pi3nn", "der")],
    "camels": [
        small("streamflow", m, "encoder.epochs=1", "encoder.units=3", dataset="camels")
        for m in ("pi3nn", "der")
    ],
}


def exported(task: Task, store: Store, folder: Path) -> Path:
    job = reproduce.prepare(task)
    assert not job.failure
    reproduce.run(job, store, folder)
    return exports.path(folder, task)


def files(folder: Path) -> dict[str, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}
