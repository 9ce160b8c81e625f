"""The bundled sets hold every value of the originals, and say what they are."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pytest
import xlrd
from omegaconf import OmegaConf

from pi3nn import paths
from pi3nn.data import bundled, uci
from pi3nn.errors import UserError

Mirror = Callable[[str], Path]

# Rows and inputs of each set.
SHAPES = {
    "boston": (506, 13),
    "concrete": (1030, 8),
    "energy": (768, 8),
    "kin8nm": (8192, 8),
    "naval": (11934, 16),
    "power": (9568, 4),
    "protein": (45730, 9),
    "wine": (1599, 11),
    "yacht": (308, 6),
}


def _text(file: str, delimiter: str | None = None, skip: int = 0) -> Callable[[Mirror], np.ndarray]:
    return lambda mirror: np.loadtxt(mirror(f"uci/{file}"), delimiter=delimiter, skiprows=skip)


def _xlsx(file: str) -> Callable[[Mirror], np.ndarray]:
    def read(mirror: Mirror) -> np.ndarray:
        sheet = openpyxl.load_workbook(mirror(f"uci/{file}"), read_only=True).worksheets[0]
        cells = np.array(list(sheet.iter_rows(min_row=2, values_only=True)), dtype=np.float64)
        empty = np.isnan(cells)  # energy's sheet has empty rows and columns at its end
        return cells[~empty.all(axis=1)][:, ~empty.all(axis=0)]

    return read


def _concrete(mirror: Mirror) -> np.ndarray:
    sheet = xlrd.open_workbook(mirror("uci/Concrete_Data.xls")).sheet_by_index(0)
    return np.array([sheet.row_values(row) for row in range(1, sheet.nrows)])


ORIGINALS: dict[str, Callable[[Mirror], np.ndarray]] = {
    "boston": _text("housing.data"),
    "concrete": _concrete,
    "energy": _xlsx("ENB2012_data.xlsx"),
    "kin8nm": _text("dataset_2175_kin8nm.csv", ",", skip=1),
    "naval": _text("naval_data.txt"),
    "power": _xlsx("Folds5x2_pp.xlsx"),
    "protein": lambda mirror: np.roll(_text("CASP.csv", ",", skip=1)(mirror), -1, axis=1),
    "wine": _text("winequality-red.csv", ";", skip=1),
    "yacht": _text("yacht_hydrodynamics.data"),
}


def _bundled(name: str) -> tuple[list[str], np.ndarray]:
    """Header and values of a bundled file, read without the code under test."""
    packed = (paths.bundled_data() / "uci" / f"{name}.csv.gz").read_bytes()
    header, *rows = gzip.decompress(packed).decode().splitlines()
    return header.split(","), np.loadtxt(rows, delimiter=",")


def test_there_are_nine_sets() -> None:
    assert set(bundled.entries("uci")) == set(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_every_value_is_that_of_the_original(name: str, mirror: Mirror) -> None:
    np.testing.assert_array_equal(_bundled(name)[1], ORIGINALS[name](mirror), strict=True)


@pytest.mark.parametrize("name", SHAPES)
def test_header_agrees_with_the_facts(name: str) -> None:
    assert _bundled(name)[0] == uci.header(name)


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_the_papers_and_values_finite(name: str) -> None:
    n_rows, n_inputs = SHAPES[name]
    dataset = uci.load(uci.Settings(name=name))
    split = dataset.split(1)
    x = np.concatenate([rows.x for rows in split.sets.values()])
    y = np.concatenate([rows.y for rows in split.sets.values()])
    assert list(split.sets) == ["train", "test"]
    assert x.shape == (n_rows, n_inputs)
    assert y.shape == (n_rows,)
    assert dataset.table().shape == (n_rows, n_inputs + 1)
    assert x.dtype == y.dtype == np.float64
    assert np.isfinite(x).all()
    assert np.isfinite(y).all()


@pytest.mark.parametrize("name", SHAPES)
def test_facts_are_complete(name: str) -> None:
    dataset = uci.load(uci.Settings(name=name))
    facts = dataset.facts
    assert facts.name == name
    assert all((facts.title, facts.source.startswith("http"), facts.licence, facts.citation))
    columns = [*facts.inputs, facts.target]
    assert [column.name for column in columns] == list(dataset.table().columns)
    assert len({column.name for column in columns}) == len(columns)
    assert all(column.meaning for column in columns)
    assert facts.files == {f"uci/{name}.csv.gz": bundled.checksums()[f"uci/{name}.csv.gz"]}
    if "archive.ics.uci.edu" in facts.source:
        assert facts.licence == "CC BY 4.0"
        assert "doi:10.24432/" in facts.citation


@pytest.mark.parametrize("name", SHAPES)
def test_readme_credits_every_set(name: str) -> None:
    readme = (paths.bundled_data() / "README.md").read_text(encoding="utf-8")
    (row,) = [line for line in readme.splitlines() if line.startswith(f"| `uci/{name}.csv.gz`")]
    facts = uci.load(uci.Settings(name=name)).facts
    assert f"| {SHAPES[name][0]:,} | `{facts.target.name}` |" in row
    assert facts.licence.split(";")[0] in row
    for doi in re.findall(r"doi:(10\.24432/\w+)", facts.citation):
        assert doi in row


def test_a_set_may_have_a_name_of_its_own() -> None:
    mine = uci.load(uci.Settings(name="mine", bundled="boston", limit=100))
    assert (mine.facts.name, len(mine.table())) == ("mine", 100)
    with pytest.raises(UserError, match=r"no UCI data set 'bostn' \(did you mean 'boston'\?\)"):
        uci.load(uci.Settings(name="mine", bundled="bostn"))


def test_rows_are_the_float32_values_the_paper_used() -> None:
    dataset = uci.load(uci.Settings(name="boston"))
    train = dataset.split(1).train
    assert (train.x == train.x.astype(np.float32)).all()
    raw = dataset.table().to_numpy()
    assert (raw != raw.astype(np.float32)).any()


def test_table_can_be_changed_without_changing_the_data_set() -> None:
    dataset = uci.load(uci.Settings(name="yacht"))
    table = dataset.table()
    table.iloc[:] = 0
    assert dataset.table().iloc[0, 0] == -2.3


@pytest.mark.parametrize(
    ("name", "other", "target"),
    [
        ("energy", "heating_load", "cooling_load"),
        ("naval", "compressor_decay", "turbine_decay"),
    ],
)
def test_other_target_is_an_input_only_when_leaked(name: str, other: str, target: str) -> None:
    plain = uci.load(uci.Settings(name=name))
    leaked = uci.load(uci.Settings(name=name, leak_other_target=True))
    assert plain.facts.target.name == leaked.facts.target.name == target
    assert other not in [column.name for column in plain.facts.inputs]
    assert [column.name for column in leaked.facts.inputs][-1] == other
    plain_test, leaked_test = plain.split(2).sets["test"], leaked.split(2).sets["test"]
    np.testing.assert_array_equal(leaked_test.x[:, :-1], plain_test.x)
    np.testing.assert_array_equal(leaked_test.y, plain_test.y)


def test_leaking_needs_a_second_target() -> None:
    with pytest.raises(UserError, match=r"leak_other_target.*boston"):
        uci.load(uci.Settings(name="boston", leak_other_target=True))


def test_misspelt_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"bostn.*did you mean 'boston'"):
        uci.load(uci.Settings(name="bostn"))


@pytest.mark.parametrize("name", SHAPES)
def test_yaml_names_its_set_and_fits_the_schema(name: str) -> None:
    config = OmegaConf.load(paths.configs() / "dataset" / f"{name}.yaml")
    assert config.pop("defaults") == ["/schema/dataset/uci@_here_", "_self_"]
    settings = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(uci.Settings), config))
    assert settings == uci.Settings(name=name, bundled=name)
