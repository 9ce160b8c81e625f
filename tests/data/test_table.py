"""A user's own table: what it becomes, and one clear sentence for each way it can be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pi3nn import data
from pi3nn.data.base import Dataset
from pi3nn.errors import UserError
from tests.support.tables import homes


def opened(path: Path, target: str = "price", **settings: Any) -> Dataset:
    return data.open_dataset("table", path=str(path), target=target, **settings)


def written(folder: Path, text: str, name: str = "my.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def lines(*rows: str, header: str = "a,b,price") -> str:
    return "\n".join([header, *rows, *(f"{i},{i * i % 7},{i}" for i in range(20))]) + "\n"


def test_every_format_gives_the_same_inputs(tmp_path: Path) -> None:
    table = homes()
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_csv(tmp_path / "t.csv.gz", index=False)
    table.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    table.to_parquet(tmp_path / "t.parquet")
    table.to_excel(tmp_path / "t.xlsx", index=False)
    wanted = opened(tmp_path / "t.csv").table()
    assert list(wanted) == ["area", "city=Bern", "city=Oslo", "city=Rome", "new", "price"]
    np.testing.assert_array_equal(wanted["area"], table["area"])
    np.testing.assert_array_equal(wanted["city=Oslo"], table["city"] == "Oslo")
    np.testing.assert_array_equal(wanted["new"], table["new"])
    for name in ("t.csv.gz", "t.tsv", "t.parquet", "t.xlsx"):
        pd.testing.assert_frame_equal(opened(tmp_path / name).table(), wanted)


def test_columns_are_left_out_and_numbers_made_labels_on_request(tmp_path: Path) -> None:
    path = written(tmp_path, lines())
    assert list(opened(path, ignore=["a"]).table()) == ["b", "price"]
    encoded = opened(path, categories=["b"]).table()
    assert list(encoded)[1:] == [f"b={level}" for level in ("0", "1", "2", "4")] + ["price"]


def test_splits_are_drawn_by_their_number_and_share_no_row(tmp_path: Path) -> None:
    split = opened(written(tmp_path, lines())).split(1)
    assert (len(split.train.y), len(split.sets["test"].y)) == (18, 2)
    assert not set(split.train.y) & set(split.sets["test"].y)


@pytest.mark.parametrize("empty", ["", "NA", "nan", "null", " "])
def test_missing_values_are_refused_dropped_or_filled_with_the_training_mean(
    tmp_path: Path, empty: str
) -> None:
    path = written(tmp_path, lines(f"{empty},3,50"))
    with pytest.raises(UserError, match=r"'a' in 1 row.*dataset.missing=drop"):
        opened(path)
    assert len(opened(path, missing="drop").table()) == 20
    filled = opened(path, missing="mean")
    split = filled.split(1)
    rows = np.vstack([split.train.x, split.sets["test"].x])
    assert len(rows) == 21
    present = split.train.x[split.train.y != 50, 0]
    target = np.concatenate([split.train.y, split.sets["test"].y])
    assert rows[target == 50, 0] == pytest.approx(present.mean())
    assert filled.schema(1).fill[0] == pytest.approx(present.mean())


def test_groups_and_times_are_counted_among_the_rows_that_are_left(tmp_path: Path) -> None:
    rows = [f"{site},{i},{'' if site == 'c' else i},{i}" for i, site in enumerate("abc" * 10)]
    path = written(tmp_path, "\n".join(["site,day,x,price", *rows]))
    with pytest.raises(UserError, match=r"dataset\.groups=site: .* has 2 group"):
        opened(path, missing="drop", groups="site", ignore=["day"])
    gone = [f"{i},{'' if i > 1 else i},{i}" for i in range(20)] + ["0,1,1", "1,1,1"] * 5
    path = written(tmp_path, "\n".join(["day,x,price", *gone]), "days.csv")
    with pytest.raises(UserError, match=r"dataset\.time=day: .* fewer than 3 different"):
        opened(path, missing="drop", time="day")


def test_a_missing_category_gets_the_shares_of_its_levels(tmp_path: Path) -> None:
    rows = [f"{city},{i}" for i, city in enumerate(["x", "x", "x", "y"] * 5)]
    path = written(tmp_path, "\n".join(["city,price", ",100", *rows]) + "\n")
    split = opened(path, missing="mean").split(3)
    x = np.vstack([split.train.x, split.sets["test"].x])
    (filled,) = x[(x > 0) & (x < 1)].reshape(-1, 2)
    assert filled.sum() == pytest.approx(1)


def test_a_row_without_target_can_only_be_left_out(tmp_path: Path) -> None:
    path = written(tmp_path, lines("1,2,"))
    with pytest.raises(UserError, match="'price' in 1 row"):
        opened(path)
    for rule in ("drop", "mean"):
        assert len(opened(path, missing=rule).table()) == 20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("a,b,price\n", "0 row"),
        ("a,b,price\n1,2,3\n", r"1 row\(s\).*needs 10"),
        (lines("1,2"), "line 2: 2 values where the header names 3"),
        (lines("1,2,3,4"), "line 2: 4 values where the header names 3"),
        (lines("1,two,3"), r"row 1, column 'b': 'two' is not a number.*dataset.categories=\[b\]"),
        (lines("1,2,many"), "row 1, column 'price': 'many' is not a number"),
        (lines("inf,2,3"), "row 1, column 'a': .*infinite"),
        (lines("1e999,2,3"), "infinite"),
        (lines("1,2,-Infinity"), "column 'price': .*infinite"),
        (lines(header="a,a,price"), "more than one column named 'a'"),
        (lines(header="a,b,cost"), r"dataset.target=price: .*no such column.*a, b, cost"),
        ("a;b;price\n1;2;3\n", "separated by ';'"),
        ("a\tb\tprice\n1\t2\t3\n", "name it .tsv"),
        ("price\n" + "1\n" * 20, "no column besides the target"),
        ("a,price\n" + "".join(f"name {i},{i}\n" for i in range(200)), "200 different texts"),
        ("a,price\n" + "".join(f"2024-01-{i:02},{i}\n" for i in range(1, 29)), "holds dates"),
        ("a,price\n" + "".join(f"{i}/1/2024 10:00,{i}\n" for i in range(1, 29)), "holds dates"),
        ("a,b,price\n" + ",1,2\n" * 20, "'a' has no value in any row"),
    ],
)
def test_a_bad_file_is_one_clear_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        opened(written(tmp_path, text), missing="refuse").split(1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"path": "/nowhere/my.csv"}, "can't read /nowhere/my.csv"),
        ({"target": "prize"}, "did you mean 'price'"),
        ({"ignore": ["c"]}, "dataset.ignore=c"),
        ({"ignore": ["price"]}, "names the target"),
        ({"categories": ["c"]}, "dataset.categories names 'c'"),
        ({"missing": "men"}, "did you mean 'mean'"),
        ({"test_share": 1.0}, "dataset.test_share"),
    ],
)
def test_a_bad_key_is_one_clear_sentence(tmp_path: Path, settings: Any, words: str) -> None:
    given = {"path": str(written(tmp_path, lines())), "target": "price", **settings}
    with pytest.raises(UserError, match=words):
        data.open_dataset("table", **given)


def test_dates_in_parquet_and_excel_are_refused_too(tmp_path: Path) -> None:
    table = homes().assign(sold=pd.date_range("2024-01-01", periods=40))
    table.to_parquet(tmp_path / "t.parquet")
    table.to_excel(tmp_path / "t.xlsx", index=False)
    for name in ("t.parquet", "t.xlsx"):
        with pytest.raises(UserError, match=r"'sold' holds dates.*dataset.ignore=\[sold\]"):
            opened(tmp_path / name)


cells = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(repr),
    st.integers(-(10**6), 10**6).map(str),
    st.sampled_from(["", "NA", "red", "blue", "true", "2024-01-05", "inf", "x,y", 'a "b"', "é"]),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data_=st.data())
def test_any_table_is_read_whole_or_refused_in_one_sentence(tmp_path: Path, data_: Any) -> None:
    columns = data_.draw(st.integers(1, 3), "columns")
    rows = data_.draw(st.lists(st.tuples(*[cells] * columns), min_size=1, max_size=15), "rows")
    table = pd.DataFrame(rows, columns=[f"c{i}" for i in range(columns)])
    table = pd.concat([table] * 10).assign(price=lambda t: np.arange(len(t)))
    table.to_csv(tmp_path / "any.csv", index=False)
    try:
        dataset = opened(
            tmp_path / "any.csv", missing=data_.draw(st.sampled_from(["drop", "mean"]))
        )
        split = dataset.split(1)
    except UserError as error:
        assert "\n" not in str(error)  # noqa: PT017 (either outcome is right)
        return
    for part in split.sets.values():
        assert np.isfinite(part.x).all()
    n = len(split.train.y) + len(split.sets["test"].y)
    assert n == len(dataset.table()) <= len(table)
