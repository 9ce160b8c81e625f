"""From the store to the numbers of the study: pure functions, but for reading members."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pi3nn import metrics
from pi3nn.paper.ood import oracle
from pi3nn.paper.ood.measures import growth
from pi3nn.results.original_units import intervals
from pi3nn.results.sweep_table import SweptJob
from pi3nn.store import Store

Array = NDArray[np.float64]
Run = tuple[int, int]  # a draw of the rows (split) and a seed
BASE = "base"
DISTANCE = "distance"  # to the training rows, the detector beside the widths
MEASURES = ("ratio", "auroc", "picp", "z_inside", "z_outside", "z_negative")
# Sets of a data set that are like the training rows and unlike them.
_PAIRS = (("test", "ood"), ("rank4", "rank1"), ("train", "test"))
_MECHANISM = "method.keep_start"  # is swept in the job whose steps show the mechanism


def numbers(jobs: Sequence[SweptJob]) -> pd.DataFrame:
    """One row per data set, factor, value and initialisation: means over runs and their ``_std``.

    Columns: ``dataset``, ``factor`` (the key that is not as in the base), ``value``, ``ood`` (with the
    initialisation or not), ``runs``, ``failed``, then `MEASURES`, of which ``z_…`` are of 1D only. The
    last row of a data set is the factor `DISTANCE`, whose ``ratio`` and ``auroc`` are of distances
    instead of widths.
    """
    study = [job for job in jobs if _MECHANISM not in job.labels["sweep"]]
    by = ["dataset", "factor", "value", "ood"]
    rows = pd.DataFrame([row for job in study for row in _members(job)])
    rows = rows.reindex(columns=[*by, "failed", *MEASURES])
    groups = rows.groupby(by, sort=False, dropna=False)
    table = groups[list(MEASURES)].mean()
    spread = groups[list(MEASURES)].std().add_suffix("_std")
    counts = groups["failed"].agg(runs="size", failed="sum")
    table = pd.concat([counts, table, spread], axis=1).reset_index()
    firsts = {str(_labels(job.store, job.keys[0])["dataset"]): job for job in reversed(study)}
    plain = [_distance(name, job.nearest()) for name, job in firsts.items()]
    table = pd.concat([table, pd.DataFrame(plain)], ignore_index=True)
    order = {name: place for place, name in enumerate(dict.fromkeys(rows["dataset"]))}
    return table.sort_values(
        "dataset", key=lambda s: s.map(order), kind="stable", ignore_index=True
    )


def factor(job: SweptJob) -> str:
    """The key that a job varies, without ``method.``; of two the first."""
    keys = re.findall(r"method\.(\w+):", job.labels["sweep"])
    return next((key for key in keys if key != "ood"), BASE)


def pair(sets: Mapping[str, Any]) -> tuple[str, str]:
    """Names of the sets that are like the training rows and unlike them."""
    return next((inside, outside) for inside, outside in _PAIRS if {inside, outside} <= set(sets))


def _labels(store: Store, key: str) -> dict[str, Any]:
    labels: dict[str, Any] = store.result(key)["member"]
    return labels


def _members(job: SweptJob) -> Iterator[dict[str, Any]]:
    name = factor(job)
    for key in job.keys:
        labels = _labels(job.store, key)
        yield {
            "dataset": labels["dataset"],
            "factor": name,
            "value": "" if name == BASE else str(labels[f"method.{name}"]),
            "ood": labels["method.ood"],
            "failed": labels["status"] != "ok",
            **(_measure(job.store, key, job.levels[0]) if labels["status"] == "ok" else {}),
        }


def _measure(store: Store, key: str, gamma: float) -> dict[str, float]:
    sets = intervals(store, key, gamma)
    inside, outside = pair(sets)
    # Rivers have no rows that are both like the training days and not among them.
    tested = sets["test" if inside == "train" else inside]
    found = {
        "ratio": float(sets[outside].width.mean() / sets[inside].width.mean()),
        "auroc": float(metrics.auroc(sets[inside].width, sets[outside].width)),
        "picp": float(metrics.picp(tested.lower, tested.upper, tested.y)),
    }
    if "line" in sets:
        found["ratio"] = growth(sets["line"], oracle.width(gamma, "normal"))["ratio"]
        x, z = z_along(store, key, "u")
        within = np.abs(x) <= 4
        found["z_inside"], found["z_outside"] = float(z[within].mean()), float((z[0] + z[-1]) / 2)
        found["z_negative"] = float((z[within] < 0).mean())
    return found


def _distance(dataset: str, far: Mapping[str, Array]) -> dict[str, Any]:
    inside, outside = pair(far)
    return {
        "dataset": dataset,
        "factor": DISTANCE,
        "value": "",
        "ratio": float(far[outside].mean() / far[inside].mean()),
        "auroc": float(metrics.auroc(far[inside], far[outside])),
    }


# --- the mechanism -------------------------------------------------------------------------------


def z_along(store: Store, key: str, net: str, hidden: str | None = None) -> tuple[Array, Array]:
    """Inputs ``x (N,)`` of the set ``line`` and the output z of a network of one input there.

    It is the output itself, before |z|, in standard deviations of y. With `hidden` the hidden layer is
    that of another network, such as the same one before its training.
    """
    stored, weights = store.predictions(key), store.weights(key)
    labels = _labels(store, key)
    train, x = stored["train/index"].astype(float), stored["line/index"].astype(float)

    def of(name: str, whose: str = net) -> Array:
        return np.asarray(weights[f"{whose}.{name}"], dtype=np.float64)

    first = hidden or net
    scaled = (x - train.mean()) / train.std()
    features = scaled[:, None] * of("hidden0.weight", first)[0] + of("hidden0.bias", first)
    act = np.tanh(features) if labels["method.activation"] == "tanh" else np.maximum(features, 0)
    z: Array = (act @ of("out.weight") + of("out.bias"))[:, 0]
    return x, z


def _steps(jobs: Sequence[SweptJob]) -> list[tuple[SweptJob, str, int, Run]]:
    """Job, key, steps and run of the members that show the mechanism, by steps."""
    found = []
    for job in jobs:
        for key in job.keys if _MECHANISM in job.labels["sweep"] else []:
            labels = _labels(job.store, key)
            if labels["status"] == "ok":
                run = (int(labels["split"]), int(labels["seed"]))
                found.append((job, key, int(labels["method.bounds_steps"]), run))
    return sorted(found, key=lambda each: each[2:])


def lines(jobs: Sequence[SweptJob]) -> pd.DataFrame:
    """What the figure of the mechanism shows: ``step``, ``x``, ``z`` of u, of the first run."""
    steps = _steps(jobs)
    first = [each for each in steps if each[3] == steps[0][3]]
    curves = [(0, *z_along(first[0][0].store, first[0][1], "u_start"))] if first else []
    curves += [(step, *z_along(job.store, key, "u")) for job, key, step, _ in first]
    parts = [pd.DataFrame({"step": step, "x": x, "z": z}) for step, x, z in curves]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def mechanism(jobs: Sequence[SweptJob]) -> pd.DataFrame:
    """One row per number of steps of u: means over seeds.

    Columns: ``step``, ``runs``, the output ``bias``, z at 0 (``z_middle``), its mean on [-4, 4]
    (``z_inside``) and at -7 and 7 (``z_outside``), and ``z_output_only``: the same if the hidden layer
    were as before the training.
    """
    rows = []
    for job, key, step, _ in _steps(jobs):
        last, first = _at(job.store, key, "u"), _at(job.store, key, "u_start")
        moved = _at(job.store, key, "u", hidden="u_start")
        rows.append({"step": step, **last, "z_output_only": moved["z_outside"]})
        if step == 1:
            rows.append({"step": 0, **first, "z_output_only": first["z_outside"]})
    if not rows:
        return pd.DataFrame(columns=["step", "runs"])
    groups = pd.DataFrame(rows).groupby("step")
    table = groups.mean()
    table.insert(0, "runs", groups.size())
    return table.reset_index()


def _at(store: Store, key: str, net: str, hidden: str | None = None) -> dict[str, float]:
    x, z = z_along(store, key, net, hidden)
    return {
        "bias": float(store.weights(key)[f"{net}.out.bias"].reshape(-1)[0]),
        "z_middle": float(z[np.abs(x).argmin()]),
        "z_inside": float(z[np.abs(x) <= 4].mean()),
        "z_outside": float((z[0] + z[-1]) / 2),
    }
