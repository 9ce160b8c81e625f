"""Made-up records whose statistics can be worked out by hand, as files that reports are made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from pi3nn.results.tables import Entry

# Mean 0.95, deviations -0.05, -0.01, 0.02 and 0.04, whose squares add up to 0.0046; the nearest to
# 0.95 is 0.94, the farthest 0.90.
FOUR = (0.90, 0.94, 0.97, 0.99)
STD = (0.0046 / 3) ** 0.5


def runs(dataset: str, method: str, protocol: str, picps: Any = FOUR, n: int = 51) -> pd.DataFrame:
    """Single seeds, so that runs are scenarios; the width of a run is 0.2, 0.3, 0.4 and so on."""
    rows = [
        {
            "experiment": "uci", "dataset": dataset, "method": method, "protocol": protocol,
            "calibrate": "none", "split": 1 + number % 2, "seed": 1, "hidden": 50 + number,
            "method.hidden": 50 + number, "set": name, "gamma": 0.95, "n": n, "picp": picp,
            "mpiw": 1.0, "nmpiw": 0.2 + number / 10, "rmse": 0.3, "interval_score": 2.0,
            "status": "ok", "seconds": 1.5, "key": f"{dataset}{method}{number}", "budget": "full",
        }
        for number, picp in enumerate(picps) for name in ("train", "test")
    ]  # fmt: skip
    return pd.DataFrame(rows)


def entry(dataset: str, method: str, protocol: str, picps: Any = FOUR, n: int = 51) -> Entry:
    """What the test rows of `runs` come to."""
    records = runs(dataset, method, protocol, picps, n)
    return Entry.of(records[records["set"] == "test"].copy(), "run", 0.95)


def ranks(method: str, protocol: str, means: Any, aurocs: Any) -> pd.DataFrame:
    """Two seeds of the flight experiment; confidence on the training rows and on ranks 1 to 4."""
    rows = [
        {
            "experiment": "flight", "dataset": "flight", "method": method, "protocol": protocol,
            "calibrate": "none", "split": 1, "seed": seed, "hidden": 100, "set": name,
            "gamma": 0.95, "n": 2000, "picp": 0.9, "width": 10.0, "score_mean": mean + shift,
            "score_std": 0.05, "score_auroc": auroc, "score_fpr95": 0.1, "crossed": 0,
            "distance.taxi_out": 3.0, "status": "ok", "seconds": 2.0, "key": f"flight{method}{seed}",
            "budget": "full",
        }
        for seed, shift in ((1, -0.02), (2, 0.02))
        for name, mean, auroc in zip(
            ("train", "rank1", "rank2", "rank3", "rank4"), means, aurocs, strict=True
        )
    ]  # fmt: skip
    return pd.DataFrame(rows)


def flows(dataset: str, method: str, protocol: str, **widths: float) -> pd.DataFrame:
    """One seed of the streamflow experiment: mean widths by set; AUROC a tenth of them, against
    ``control`` a twentieth."""
    rows = [
        {
            "experiment": "streamflow", "dataset": dataset, "method": method, "protocol": protocol,
            "calibrate": "none", "split": 1, "seed": 1, "hidden": 100, "set": name, "gamma": 0.95,
            "n": 365, "picp": 0.9, "width": width, "nse": 0.8, "kge": 0.7, "high_width": 9.0,
            "high_picp": 0.5, "score_auroc": width / 10, "control_auroc": width / 20, "crossed": 0,
            "status": "ok", "seconds": 2.0, "key": f"{dataset}{method}", "budget": "full",
        }
        for name, width in widths.items()
    ]  # fmt: skip
    return pd.DataFrame(rows)


def export(folder: Path, *tables: pd.DataFrame, budget: str = "full") -> Path:
    """Files as `scripts/reproduce_paper` leaves them."""
    for records in tables:
        first = records.iloc[0]
        below = folder / "records" / str(first["protocol"])
        below.mkdir(parents=True, exist_ok=True)
        name = f"{first['experiment']}-{first['dataset']}-{first['method']}"
        records.assign(budget=budget).to_csv(below / f"{name}.csv.gz", index=False)
        path = below / "provenance.json"
        facts = json.loads(path.read_text()) if path.is_file() else {"shards": {}}
        facts |= {"protocol": str(first["protocol"]), "budget": budget}
        facts["shards"][name] = {
            "members": 4, "failed": 0, "seconds": 6.0, "date": "2026-01-01", "commits": ["abc"],
            "versions": {"torch": "2.0"}, "python": "3.11", "cpu": "a", "cores": 2, "note": "",
        }  # fmt: skip
        path.write_text(json.dumps(facts))
    return folder


SQR = (0.951, 0.951, 0.951, 0.951)
TABLES = (
    runs("boston", "pi3nn", "paper"),
    runs("boston", "qd", "paper", (0.60, 0.60, 0.60, 0.60)),
    runs("boston", "piven", "paper", (0.83, 0.83, 0.83, 0.83)),
    runs("boston", "sqr", "paper", SQR),
    runs("boston", "der", "paper", (0.87, 0.87, 0.87, 0.87)),
    runs("yacht", "pi3nn", "released", n=31),
    runs("boston", "sqr", "released", SQR),
    ranks("pi3nn", "released", (0.9, 0.24, 0.33, 0.72, 0.92), (0.5, 0.99, 0.97, 0.95, 0.5)),
    ranks("der", "released", (0.95, 1.0, 1.0, 1.0, 1.0), (0.5, 0.4, 0.4, 0.4, 0.5)),
)
