"""Streamflow in one row of the claims: both basins, with and without the initialisation, and controls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pi3nn.paper.report.source import Source, lowest
from pi3nn.paper.tasks import CONTROL
from pi3nn.results.tables import each

BASINS = {"streamflow": "the East River (Pumphouse)", "rock": "Rock Creek"}


def in_numbers(source: Source) -> str:
    """How well PI3NN's width tells the test year from the training years, and an ordinary year that is
    as unseen; of the basins that were run."""
    sentences = [_basin(name, _pi3nn(source, dataset)) for dataset, name in BASINS.items()]
    sentences += [
        _control(name, _pi3nn(source, CONTROL.format(dataset))) for dataset, name in BASINS.items()
    ]
    if on := _pi3nn(source, "quigley").get("pi3nn"):
        sentences.append(
            f"Quigley Creek, whose test year is an ordinary one: AUROC {on.auroc:.2f}, "
            f"{on.widening:.2f} times as wide as training."
        )
    return " ".join(filter(None, sentences))


def _pi3nn(source: Source, dataset: str) -> Mapping[str, Any]:
    """Its numbers with and without the initialisation at the lowest level; empty if it was not run."""
    report = source.ood.get(dataset)
    rows = {} if report is None else {row.method: row for row in each(lowest(report.numbers))}
    return {method: rows[method] for method in ("pi3nn", "pi3nn_no_ood") if method in rows}


def _basin(name: str, rows: Mapping[str, Any]) -> str:
    if "pi3nn" not in rows:
        return ""
    text = f"{name[0].upper()}{name[1:]}: AUROC of the width, test against training days, "
    words = {"pi3nn": "with", "pi3nn_no_ood": "without the initialisation"}
    text += " and ".join(f"{row.auroc:.2f} {words[method]}" for method, row in rows.items())
    ratios = " and ".join(f"{row.widening:.2f}" for row in rows.values())
    return f"{text}; test over training width {ratios}."


def _control(name: str, rows: Mapping[str, Any]) -> str:
    if "pi3nn" not in rows:
        return ""
    on = rows["pi3nn"]
    return (
        f"Control, {name}, trained on one ordinary year: the other ordinary year is "
        f"{on.control_widening:.2f} times as wide as training, the wet one {on.widening:.2f} times; wet "
        f"against unseen ordinary days AUROC {on.wet_auroc:.2f}."
    )
