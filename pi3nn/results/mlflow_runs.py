"""Runs as MLflow shows them: ``pi3nn-report mlflow``, one of its runs for each scenario.

A scenario is one split and one choice of hyper-parameters; its metrics are means over seeds. What is in
MLflow already is known by a tag made of its members' keys, so that nothing is added twice.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pi3nn.errors import UserError, first_line
from pi3nn.results import records, run_notes, run_page
from pi3nn.results.run_notes import Note
from pi3nn.results.tables import METRICS

TAG = "pi3nn.scenario"
PAGE = "report.html"
_MOST = 100
"""Parameters, and metrics, of one message to MLflow."""
_OF_A_MEMBER = ("seed", "gamma")  # what differs between the members of a scenario


@dataclass(frozen=True)
class Scenario:
    """What becomes a run of MLflow."""

    experiment: str
    name: str
    params: dict[str, str]
    metrics: dict[str, float]  # ``test/picp_0.95``: set, metric, level
    tags: dict[str, str]


def scenarios(note: Note) -> list[Scenario]:
    """Those of a run, from what it left behind."""
    table = records.of_members(note.store, note.keys, note.levels)
    configs = {key: records.flat(note.store.config(key)) for key in dict.fromkeys(note.keys)}
    shared = {key: _shared(config) for key, config in configs.items()}
    groups = table.groupby(table["key"].map(lambda key: tuple(sorted(shared[key].items()))))
    return [_scenario(of_group, configs, dict(params)) for params, of_group in groups]


def send(folder: Path, uri: str) -> tuple[int, int]:
    """Add the scenarios in `folder`, that of a run or a sweep, to the MLflow at `uri`.

    Returns
    -------
    int, int
        How many are new or have something new, and how many there are.

    Raises
    ------
    UserError
        If MLflow is not installed or can't be reached, or nothing was run in `folder`.
    """
    notes = _notes(folder)
    client, failure = _client(uri)
    count = sent = 0
    try:
        for path, note in notes.items():
            page = ""
            for scenario in scenarios(note):
                count += 1
                known = _known(client, scenario)
                if known is not None and _has_all(known, scenario):
                    continue
                sent += 1
                page = page or _page(path, note)
                _send(client, scenario, known, page)
    except failure as error:
        raise UserError(f"--uri {uri}: MLflow says {first_line(error)}") from error
    return sent, count


def run_folders(folder: Path) -> list[Path]:
    """A run's own, or those of the jobs of a sweep; where it is neither, `run_notes` says so."""
    jobs = sorted(path.parent for path in folder.glob(f"*/{run_notes.FILE}"))
    return [folder] if (folder / run_notes.FILE).is_file() or not jobs else jobs


def _notes(folder: Path) -> dict[Path, Note]:
    """Those of a run or of the jobs of a sweep; a line names a job of which nothing is left."""
    notes, without = dict[Path, Note](), list[UserError]()
    for path in run_folders(folder):
        try:
            notes[path] = run_notes.read(path)
        except UserError as error:
            without.append(error)
    if not notes:
        raise without[0]
    for nothing_left in without:
        logging.getLogger("pi3nn").warning(f"left out: {nothing_left}")
    return notes


def _shared(config: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in config.items() if key not in _OF_A_MEMBER}


def _scenario(
    table: pd.DataFrame, configs: Mapping[str, Mapping[str, Any]], params: dict[str, str]
) -> Scenario:
    first, keys = table.iloc[0], sorted(set(table["key"]))
    seeds = sorted({configs[key]["seed"] for key in keys})
    return Scenario(
        experiment=f"pi3nn {first['experiment']}",
        name=f"{first['dataset']} {first['method']} split {first['split']}",
        params={**params, "seeds": str(seeds)},
        metrics=dict(_metrics(table)),
        tags={
            TAG: hashlib.sha256(" ".join(keys).encode()).hexdigest()[:20],
            "pi3nn.members": " ".join(keys)[:5000],
            "pi3nn.failed": str(int((table.drop_duplicates("key")["status"] != "ok").sum())),
        },
    )


def _metrics(table: pd.DataFrame) -> Iterator[tuple[str, float]]:
    for (name, gamma), of_level in table.groupby(["set", "gamma"]):
        for metric in METRICS:
            value = float(of_level[metric].astype(float).mean())
            if math.isfinite(value):
                yield f"{name}/{metric}_{gamma:g}", value
    yield "seconds", float(table.drop_duplicates("key")["seconds"].sum())


def _page(folder: Path, note: Note) -> str:
    table = folder / "table.md"
    return run_page.page(note, table.read_text(encoding="utf-8") if table.is_file() else "")


# --- MLflow --------------------------------------------------------------------------------------


def _client(uri: str) -> tuple[Any, type[Exception]]:
    """A client, and the exception that it raises."""
    # Of a server that is not there it would tell after minutes, and of its use it would tell others.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ModuleNotFoundError as error:
        raise UserError("pi3nn-report mlflow needs MLflow: pip install 'pi3nn[mlflow]'") from error
    try:
        return MlflowClient(uri), MlflowException
    except Exception as error:  # of its store, of SQLAlchemy or of a driver
        raise UserError(f"--uri {uri}: MLflow can't use it, {first_line(error)}") from error


def _known(client: Any, scenario: Scenario) -> Any:
    """The run that a scenario has already; None without one."""
    experiment = client.get_experiment_by_name(scenario.experiment)
    if experiment is None:
        return None
    where = f"tags.`{TAG}` = '{scenario.tags[TAG]}'"
    found = client.search_runs([experiment.experiment_id], where, max_results=1)
    return found[0] if found else None


def _has_all(known: Any, scenario: Scenario) -> bool:
    """Whether a run was sent to its end, at all these levels."""
    return known.info.status == "FINISHED" and set(scenario.metrics) <= set(known.data.metrics)


def _send(client: Any, scenario: Scenario, known: Any, page: str) -> None:
    from mlflow.entities import Metric, Param

    run = known or client.create_run(
        _experiment(client, scenario.experiment), tags=scenario.tags, run_name=scenario.name
    )
    now = int(1000 * time.time())
    # The same parameter twice is no mistake; the same metric would be a second point of a curve.
    params = [Param(name, value) for name, value in scenario.params.items()]
    metrics = [
        Metric(name, value, now, 0)
        for name, value in scenario.metrics.items()
        if name not in run.data.metrics
    ]
    for part in _parts(params):
        client.log_batch(run.info.run_id, params=part)
    for part in _parts(metrics):
        client.log_batch(run.info.run_id, metrics=part)
    client.log_text(run.info.run_id, page, PAGE)
    client.set_terminated(run.info.run_id)


def _experiment(client: Any, name: str) -> str:
    known = client.get_experiment_by_name(name)
    return str(known.experiment_id if known else client.create_experiment(name))


def _parts(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), _MOST):
        yield items[start : start + _MOST]
