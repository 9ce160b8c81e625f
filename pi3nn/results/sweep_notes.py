"""The note that a sweep leaves in its folder as it begins: its jobs, for whoever sums them up later."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from pi3nn import atomic
from pi3nn.errors import UserError
from pi3nn.results.sweep_table import SweptJob
from pi3nn.store import Store

_FILE = "sweep.json"


def leave(folder: Path, jobs: Sequence[SweptJob]) -> None:
    """Write the note into `folder`."""
    content = [
        {
            "labels": job.labels,
            "store": os.path.relpath(job.store.root, folder),  # the two may move together
            "keys": job.keys,
            "levels": job.levels,
            "unit": job.unit,
            "changed": list(job.changed),
        }
        for job in jobs
    ]
    atomic.write_text(folder / _FILE, json.dumps(content))


def read(folder: Path) -> list[SweptJob]:
    """The jobs of the sweep that has this folder.

    Raises
    ------
    UserError
        If no sweep has it.
    """
    try:
        content = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{folder} is not the folder of a sweep: give one that pi3nn-run -m made, such as those in "
            "results/sweeps"
        ) from error
    stores = {root: Store((folder / root).resolve()) for root in {job["store"] for job in content}}
    return [
        SweptJob(
            job["labels"],
            stores[job["store"]],
            job["keys"],
            job["levels"],
            job["unit"],
            job["changed"],
        )
        for job in content
    ]
