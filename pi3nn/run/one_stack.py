"""One stack: train its members, judge their intervals, store them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pi3nn import methods
from pi3nn.engine import curves
from pi3nn.engine.training import OnProgress
from pi3nn.intervals.judge import Evidence, by_set, judge, reliability
from pi3nn.models import fitting
from pi3nn.run import provenance
from pi3nn.run.member import Member
from pi3nn.run.prepare import Prepared, distances, prepare
from pi3nn.store import Arrays, Store

Levels = Mapping[str, Sequence[float]]  # by the key of a member


def train(
    members: Sequence[Member],
    on_progress: OnProgress,
    store: Store,
    levels: Levels,
    force: bool,
    threads: int = 1,
) -> None:
    """Train one stack on so many threads, judge its members at their `levels` and store them."""
    device = members[0].config["device"]
    # Processor time, which no other program adds to, where that is what training takes.
    clock = time.process_time if device == "cpu" else time.perf_counter
    started, begun = time.time(), clock()
    prepared = [prepare(member) for member in members]
    fit = fit_stack(members, prepared, on_progress, threads)
    fitted, state = fit.fitted, fit.state()
    arrays = _predictions(prepared, fit, device)
    seconds = (clock() - begun) / len(members)
    with store.together():
        for m, member in enumerate(members):
            scalars = prepared[m].scalars | {k: float(v[m]) for k, v in fitted.scalars.items()}
            result: dict[str, Any] = {
                "member": _labels(member, fitted.failures.get(m, ""), seconds),
                "scalars": scalars,
                "records": [],
                "losses": curves.record(fitted.curves, m),
                "distances": distances(member, prepared[m]),
                "background": _background(member),
            }
            gamma = member.config["gamma"]
            _judge(member, arrays[m], result, levels[member.key] if gamma is None else [gamma])
            weights = {name: values[m] for name, values in state.items()} | prepared[m].weights
            origin = {**provenance.facts(), "started": started, "stack": len(members)}
            store.write(member.key, member.config, result, arrays[m], weights, origin, force)
    add_levels(members, store, levels)  # of those that another process has stored meanwhile
    on_progress(1.0, float("nan"))


def fit_stack(
    members: Sequence[Member],
    prepared: Sequence[Prepared],
    on_progress: OnProgress,
    threads: int = 1,
) -> fitting.Fit:
    """The trained networks of members that share a stack."""
    config = members[0].config
    keys = ("calibrate", "engine", "device", "gamma")
    how = fitting.How(
        **{key: config[key] for key in keys},
        # Left out of a configuration where they have no effect.
        folds=config.get("folds", 0),
        repeats=config.get("repeats"),
        widen=config.get("widen", "none"),
        threads=threads,
    )
    return fitting.fit(
        methods.get(members[0].kind),
        prepared,
        [member.config["seed"] for member in members],
        [member.settings for member in members],
        how,
        on_progress,
    )


def add_levels(members: Sequence[Member], store: Store, levels: Levels) -> None:
    """Records for levels that were not asked for when stored members were trained."""
    lacking = [member for member in members if _new_levels(member, store, levels)]
    while lacking:  # once more, where another process has added its own meanwhile
        with store.together():
            for member in lacking:
                result, predictions = store.result(member.key), store.predictions(member.key)
                _judge(member, predictions, result, _new_levels(member, store, levels))
                store.replace(member.key, result, predictions)
        lacking = [member for member in lacking if _new_levels(member, store, levels)]


def _new_levels(member: Member, store: Store, levels: Levels) -> list[float]:
    if member.config["gamma"] is not None:
        return []
    judged = store.levels(member.key)
    return [gamma for gamma in levels[member.key] if gamma not in judged]


def _judge(
    member: Member, predictions: Arrays, result: dict[str, Any], levels: Sequence[float]
) -> None:
    """Add intervals and records at `levels`; those of a failed member say only what was asked."""
    if result["member"]["status"] != "ok":
        result["records"] += [
            {"set": name, "gamma": gamma, "n": outputs["y"].size}
            for gamma, (name, outputs) in itertools.product(levels, by_set(predictions).items())
        ]
        return
    evidence = Evidence(member.settings, member.config["calibrate"], predictions, result["scalars"])
    if "reliability" not in result and member.config["gamma"] is None:
        result["reliability"] = reliability(evidence)
    records, intervals = judge(evidence, levels)
    result["records"] += records
    predictions |= intervals


def _predictions(prepared: Sequence[Prepared], fit: fitting.Fit, device: str) -> list[Arrays]:
    """For every member what is kept of its outputs: single precision, by ``<set>/<output>``.

    ``<set>/index`` is the label of a row where rows have one.
    """
    kept: list[Arrays] = [{} for _ in prepared]
    for name, outputs in fit.outputs(prepared, device).items():
        for m, arrays in enumerate(kept):
            arrays |= {f"{name}/{output}": values[m] for output, values in outputs.items()}
            index = prepared[m].sets[name].index
            if index is not None:
                arrays[f"{name}/index"] = index
    return kept


def _background(member: Member) -> dict[str, list[Any]]:
    """What figures show behind the rows, see `pi3nn.data.base.Background`; ``index`` as text."""
    shown = member.dataset.background()
    if shown is None:
        return {}
    values = {name: of_name.tolist() for name, of_name in shown.values.items()}
    return {"index": shown.index.astype(str).tolist(), **values}


def _labels(member: Member, reason: str, seconds: float) -> dict[str, Any]:
    """The columns that all records of a member share."""
    config = member.config
    return {
        "experiment": config["experiment"],
        "dataset": config["dataset"]["name"],
        "method": config["method"]["name"],
        "protocol": config["protocol"],
        "calibrate": config["calibrate"],
        "split": config["split"],
        "seed": config["seed"],
        "hidden": config["method"].get("hidden"),
        "status": "failed" if reason else "ok",
        "reason": reason,
        "seconds": seconds,
        **{f"method.{key}": value for key, value in config["method"].items() if key != "name"},
    }
