"""The tables of each experiment out of distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from pi3nn.paper.ood.averages import Position, Runs, averages, beside_paper, judged
from pi3nn.paper.ood.measures import HIGHEST
from pi3nn.paper.paper_methods import ood_title
from pi3nn.paper.standing import ENOUGH, MOST_SCATTER, RARE
from pi3nn.paper.verdicts import Judged
from pi3nn.results import comparison
from pi3nn.results.tables import each


@dataclass(frozen=True)
class Section:
    """A table for reading, with a line above and lines below it; ``explanations`` are of verdicts."""

    title: str
    table: pd.DataFrame
    notes: Sequence[str] = ()
    explanations: Sequence[str] = ()


@dataclass(frozen=True)
class ExperimentReport:
    """What an experiment leaves: numbers for machines, sections for people, figures by name."""

    numbers: pd.DataFrame
    sections: list[Section]
    figures: Callable[[], dict[str, Any]]
    # Verdicts on both statistics, where the paper prints numbers.
    judged: Mapping[Position, Judged] = field(default_factory=dict)


def _score(row: Any) -> str:
    return f"{row.confidence_mean:.2f} ± {row.confidence_std:.2f}"


def _if_any(value: float, form: str) -> str:
    return "" if math.isnan(value) else format(value, form)


def _rule(table: pd.DataFrame, runs: Runs) -> list[str]:
    """What confidence and verdicts are, and why there are none where settings differ."""
    rule = (
        f"Confidence is mean ± standard deviation over rows, averaged over {int(table['runs'].max())} "
        "run(s)."
    )
    if (table["verdict"] != "").any():
        rule += (
            " Verdicts: a printed mean is that of one single run; beyond all of ours it differs, else "
            f"its rank among them decides (two-sided p of {RARE:g}), unless they scatter over more than "
            f"{MOST_SCATTER:g}. Fewer than {ENOUGH} runs can't tell; seeds=[1,2,3] takes three."
        )
    printed = set(table.loc[table["paper"] != "", "method"])
    changed = {ood_title(m): keys for m, keys in runs.changed.items() if m in printed}
    return [rule, *comparison.no_verdicts(changed)]


def _by_set(table: pd.DataFrame, runs: Runs) -> Iterator[tuple[str, dict[str, Any]]]:
    """The title of each method, and its rows at the lowest level by set."""
    for method in runs.methods:
        sets = {r.set: r for r in each(table) if (r.method, r.gamma) == (method, runs.levels[0])}
        if sets:
            yield ood_title(method), sets


def _explanations(table: pd.DataFrame, gamma: float) -> list[str]:
    """Why numbers of the table differ from the printed ones."""
    rows = table[(table["gamma"] == gamma) & (table["explanation"] != "")]
    sets: dict[tuple[str, str], list[str]] = {}
    for row in each(rows.sort_values("set", kind="stable")):
        name = f"{row.set} ({row.standing})"
        sets.setdefault((row.method, row.explanation), []).append(name)
    return comparison.shared(
        (f"{ood_title(method)} {', '.join(names)}", explanation)
        for (method, explanation), names in sets.items()
    )


def _shown(rows: list[dict[str, str]]) -> pd.DataFrame:
    """The rows as a table, which shows verdicts if there are any."""
    table = pd.DataFrame(rows)
    verdicts = [name for name in table if str(name).startswith("verdict")]
    return table if table[verdicts].to_numpy().any() else table.drop(columns=verdicts)


# --- 10D cubic: Table 2 and Figure 2 ---------------------------------------------------------------


def _cubic10d(runs: Runs) -> ExperimentReport:
    table, gamma = averages(runs), runs.levels[0]
    cells = judged(table, "conf_10d", runs)
    table = beside_paper(table, "conf_10d", cells)
    shown = []
    for title, sets in _by_set(table, runs):
        train, ood = sets["train"], sets["ood"]
        shown.append(
            {
                "method": title,
                "train": _score(train),
                "paper": train.paper,
                "verdict": train.verdict,
                "OOD": _score(ood),
                "paper ": ood.paper,
                "verdict ": ood.verdict,
                "std of seeds": _if_any(ood.seeds_std, ".3f"),
                "AUROC": f"{ood.auroc:.3f}",
                "FPR95": f"{ood.fpr95:.3f}",
                "PICP test": f"{sets['test'].picp:.3f}",
                "crossed": _if_any(train.crossed, "g"),
            }
        )
    section = Section(
        f"Table 2: confidence at {gamma:.4g}",
        _shown(shown),
        [*_rule(table, runs), *_between(table, runs, "test")],
        _explanations(table, gamma),
    )
    return ExperimentReport(table, [section], lambda: _figures().cubic10d(runs, table), cells)


# --- 1D cubic: Figure 1 ----------------------------------------------------------------------------


def _cubic1d(runs: Runs) -> ExperimentReport:
    by, roots = ["method", "gamma"], ["nu", "alpha", "beta"]
    line = runs.trained[runs.trained["set"] == "line"]
    groups = line.astype(dict.fromkeys(roots, float)).groupby(by, sort=False)
    numbers = groups[["inside", "left", "right", "ratio", "smallest", *roots]].mean()
    tested = runs.trained[runs.trained["set"] == "test"].groupby(by, sort=False)
    numbers = numbers.join(tested[["picp", "score_y", "oracle_y"]].mean())
    numbers["pinched"] = groups["pinched"].sum()
    numbers["seeds_std"] = groups["ratio"].std()
    numbers.insert(0, "runs", groups.size())
    numbers["between_levels"] = groups["between_levels"].mean()
    shown = [
        {
            "method": ood_title(method),
            "level": f"{gamma:g}",
            "inside": f"{row.inside:.1f}",
            "x = -7": f"{row.left:.1f}",
            "x = 7": f"{row.right:.1f}",
            "ratio": f"{row.ratio:.2f}",
            "std of seeds": _if_any(row.seeds_std, ".3f"),
            "pinched": f"{row.pinched:.0f} of {row.runs:.0f}",
            "score": f"{row.score_y:.1f}",
            "oracle": f"{row.oracle_y:.1f}",
            "PICP test": f"{row.picp:.3f}",
            "crossings": _if_any(row.between_levels, "g"),
        }
        for method in runs.methods
        for gamma, row in numbers.loc[[method]].droplevel("method").iterrows()
    ]
    section = Section(
        "Width beyond the training rows",
        pd.DataFrame(shown),
        [
            "Inside: the mean width on [-4, 4]. Ratio: the mean width at x = -7 and 7 over it. "
            f"Averages of {int(numbers['runs'].max())} run(s). Pinched: runs whose smallest width on "
            "[-4, 4] is below a third of the true noise's. Score: the interval score on test rows, in "
            "units of y; oracle: that of the true quantiles, the best there is. Crossings: places of "
            "561 on [-7, 7] where a lower level's interval sticks out of a higher one's."
        ],
    )
    return ExperimentReport(numbers.reset_index(), [section], lambda: _figure_1(runs))


def _figure_1(runs: Runs) -> dict[str, Any]:
    from pi3nn.paper.ood import cubic1d_figure  # as late as `_figures`

    return cubic1d_figure.figures(runs)


def _between(table: pd.DataFrame, runs: Runs, name: str) -> list[str]:
    """A sentence on crossings between the levels, where there is more than one."""
    rows = table[(table["set"] == name) & table["between_levels"].notna()]
    if rows.empty:
        return []
    counts = ", ".join(f"{ood_title(r.method)} {r.between_levels:g}" for r in each(rows))
    levels = ", ".join(f"{level:g}" for level in runs.levels)
    n = int(rows["n"].iloc[0])
    return [f"Crossings between the levels {levels}, of {n} {name} rows: {counts}."]


# --- flight delays: Table 3 ------------------------------------------------------------------------

RANKS = ("rank1", "rank2", "rank3", "rank4")


def _flight(runs: Runs) -> ExperimentReport:
    table, gamma = averages(runs), runs.levels[0]
    cells = judged(table, "conf_flight", runs)
    table = beside_paper(table, "conf_flight", cells)
    scores, detection = [], []
    for title, sets in _by_set(table, runs):
        shown = {"method": title}
        for number, rank in enumerate(RANKS, 1):
            row = sets[rank]
            shown |= {f"rank {number}": _score(row), f"paper {number}": row.paper}
            shown[f"verdict {number}"] = row.verdict
        scores.append(shown)
        columns = {f"AUROC {r[-1]} : 4": f"{sets[r].auroc:.3f}" for r in RANKS[:3]}
        columns["std of seeds, 1 to 4"] = " ".join(
            _if_any(sets[rank].seeds_std, ".3f") for rank in RANKS
        )
        columns["PICP 1 to 4"] = " ".join(f"{sets[rank].picp:.2f}" for rank in RANKS)
        columns["crossed 1 to 4"] = " ".join(_if_any(sets[rank].crossed, "g") for rank in RANKS)
        detection.append({"method": title, "train": _score(sets["train"]), **columns})
    sections = [
        Section(
            f"Table 3: confidence at {gamma:.4g} by rank of the airport",
            _shown(scores),
            _rule(table, runs),
            _explanations(table, gamma),
        ),
        Section(
            "Rank 4 against the others", pd.DataFrame(detection), _between(table, runs, "rank4")
        ),
        Section(
            "How far each rank is from the training rows",
            _distances(runs),
            ["Difference of the means in standard deviations of the training rows."],
        ),
    ]
    return ExperimentReport(table, sections, lambda: _figures().flight(runs, table), cells)


def _distances(runs: Runs) -> pd.DataFrame:
    # Without rows set aside, as SQR has them, the training rows are all of them.
    rows = runs.trained.sort_values("method", key=lambda m: m == "sqr", kind="stable")
    far = rows.drop_duplicates("set").set_index("set").filter(like=(prefix := "distance."))
    far.columns = far.columns.str.removeprefix(prefix)
    shown = far.loc[list(RANKS)].map("{:+.2f}".format)
    shown.insert(0, "rank", shown.index.str[-1])
    return shown.reset_index(drop=True)


# --- streamflow: Figure 4 --------------------------------------------------------------------------


def _streamflow(runs: Runs) -> ExperimentReport:
    table = _river_numbers(runs)
    shown = [
        {
            "method": ood_title(row.method),
            "level": f"{row.gamma:g}",
            "PICP train": f"{row.train_picp:.3f}",
            "PICP test": f"{row.test_picp:.3f}",
            "width train": _with_scatter(row.train_width, row.train_width_std),
            "width test": _with_scatter(row.test_width, row.test_width_std),
            "test / train": _with_scatter(row.widening, row.widening_std, 2),
            "AUROC": _with_scatter(row.auroc, row.auroc_std, 3),
            **_unseen(row),
            "width highest": _with_scatter(row.high_width, row.high_width_std),
            "PICP highest": f"{row.high_picp:.3f}",
            "NSE": f"{row.train_nse:.2f} / {row.test_nse:.2f}",
            "KGE": f"{row.train_kge:.2f} / {row.test_kge:.2f}",
        }
        for method in runs.methods
        for row in each(table[table["method"] == method])
    ]
    note = (
        f"Averages of {int(table['runs'].max())} run(s); ± is their standard deviation. Widths are in "
        "units of the flow; test / train: the mean width on test days over that on training days; highest: "
        f"the test days with the highest {HIGHEST:.0%} of flows. AUROC: how well the width tells test days "
        "from training days. NSE and KGE of the prediction (training / test days). The paper prints no "
        "numbers: its Figure 4 shows PI3NN wide on test days and the others as narrow as on training days."
    )
    if "control_widening" in table:
        note += (
            " Unseen: the days of an ordinary year that is not trained on; their width over that on "
            "training days, the AUROC against these, and how well the width tells test days from them."
        )
    title = f"Figure 4 in numbers: {runs.first.dataset}"
    section = Section(title, pd.DataFrame(shown), [note])
    return ExperimentReport(table, [section], lambda: _streamflow_figures(runs))


def _river_numbers(runs: Runs) -> pd.DataFrame:
    """One row per method and level: means over runs, and standard deviations of some."""
    by = ["method", "gamma"]
    members = runs.trained.set_index([*by, "key", "set"])

    def of_set(name: str, *columns: str) -> pd.DataFrame:
        return pd.DataFrame(members.xs(name, level="set")[list(columns)])

    parts = [
        of_set(name, "picp", "width", "nse", "kge").add_prefix(f"{name}_")
        for name in ("train", "test")
    ]
    parts.append(of_set("test", "high_width", "high_picp", "score_auroc"))
    together = pd.concat(parts, axis=1).rename(columns={"score_auroc": "auroc"})
    together["widening"] = together["test_width"] / together["train_width"]
    scattered = ["train_width", "test_width", "high_width", "widening", "auroc"]
    if "control" in set(runs.trained["set"]):
        unseen = of_set("control", "width", "score_auroc")
        together["control_widening"] = unseen["width"] / together["train_width"]
        together["control_auroc"] = unseen["score_auroc"]
        together["wet_auroc"] = of_set("test", "control_auroc")["control_auroc"]
    groups = together.groupby(by, sort=False)
    table = groups.mean()
    table.insert(0, "runs", groups.size())
    for name in scattered:
        table[f"{name}_std"] = groups[name].std()
    return table.reset_index()


def _unseen(row: Any) -> dict[str, str]:
    """Columns of a run with a control."""
    if not hasattr(row, "control_widening"):
        return {}
    return {
        "unseen / train": f"{row.control_widening:.2f}",
        "AUROC unseen": f"{row.control_auroc:.3f}",
        "AUROC test : unseen": f"{row.wet_auroc:.3f}",
    }


def _streamflow_figures(runs: Runs) -> dict[str, Any]:
    from pi3nn.paper.ood import streamflow_figure  # as `_figures`

    return streamflow_figure.figures(runs)


def _with_scatter(mean: float, std: float, digits: int = 1) -> str:
    return f"{mean:.{digits}f}" + ("" if math.isnan(std) else f" ± {std:.{digits}f}")


def _figures() -> Any:
    from pi3nn.paper.ood import ood_figures  # half a second: not before the table is on the screen

    return ood_figures


REPORTS: dict[str, Callable[[Runs], ExperimentReport]] = {
    "cubic1d": _cubic1d,
    "cubic10d": _cubic10d,
    "flight": _flight,
    "streamflow": _streamflow,
}
