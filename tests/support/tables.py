"""Tables as users have them."""

from __future__ import annotations

import numpy as np
import pandas as pd


def homes(rows: int = 40) -> pd.DataFrame:
    """Prices of homes by a number, a category and a boolean; the same every time."""
    source = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "area": source.uniform(30, 200, rows).round(2),
            "city": source.choice(["Rome", "Bern", "Oslo"], rows),
            "new": source.random(rows) < 0.5,
            "price": source.normal(300, 50, rows).round(1),
        }
    )
