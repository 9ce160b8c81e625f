"""The estimators keep scikit-learn's contract, and say what a run says."""

from __future__ import annotations

import importlib.util
import pickle
import pkgutil
import re
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

import pi3nn
from pi3nn import (
    CQRRegressor,
    DERRegressor,
    LinearRegressor,
    PI3NNCrossRegressor,
    PI3NNRegressor,
    PIVENRegressor,
    QDRegressor,
    QuantileRegressor,
    SQRRegressor,
    data,
    methods,
)
from pi3nn.store import Store
from tests.support.runs import composed, run

# Trained as briefly as scikit-learn's demands on the score allow.
PI3NN = PI3NNRegressor(steps=100, hidden=16, levels=(0.8,))
OTHERS = [
    QDRegressor(epochs=150, hidden=16, levels=(0.8,)),
    PIVENRegressor(epochs=60, hidden=16, levels=(0.8,)),
    SQRRegressor(epochs=60, hidden=16, learning_rate=0.01, levels=(0.8,)),
    DERRegressor(epochs=30, batch=16, hidden=16, learning_rate=0.01, levels=(0.8,)),
    CQRRegressor(epochs=60, hidden=16, learning_rate=0.01),
    PI3NNCrossRegressor(steps=100, repeats=1, levels=(0.8,)),
]
DEFAULTS = [type(model)() for model in [PI3NN, *OTHERS]]
QUICK = [
    PI3NNRegressor(steps=30, hidden=8, levels=(0.8, 0.5)),
    QDRegressor(epochs=10, hidden=8, levels=(0.8, 0.5)),
    PIVENRegressor(epochs=10, hidden=8, levels=(0.8, 0.5)),
    SQRRegressor(epochs=5, hidden=8, levels=(0.8, 0.5)),
    DERRegressor(epochs=5, batch=16, hidden=8, levels=(0.8, 0.5)),
    CQRRegressor(epochs=5, hidden=8, levels=(0.8, 0.5)),
]
each = pytest.mark.parametrize("quick", QUICK, ids=lambda model: type(model).__name__)


def rows(n: int = 80, features: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(seed)
    x = source.normal(size=(n, features))
    return x, 100 + 20 * x[:, 0] + source.normal(size=n)


# Folds and batches are drawn by row, so that a row that counts twice is not two rows.
UNEQUAL = {
    f"check_sample_weight_equivalence_on_{kind}_data": "folds and batches are drawn by row"
    for kind in ("dense", "sparse")
}


def checked(estimator: Any, check: Any) -> None:
    try:
        check(estimator)
    except unittest.SkipTest as reason:
        # It needs a variable that is read before anything is imported, and we claim no support.
        if "SCIPY_ARRAY_API" not in str(reason):
            raise


@parametrize_with_checks([PI3NN], expected_failed_checks=lambda _: UNEQUAL)
def test_pi3nn_passes_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    checked(estimator, check)


@pytest.mark.slow
@parametrize_with_checks(OTHERS, expected_failed_checks=lambda _: UNEQUAL)
def test_the_others_pass_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    checked(estimator, check)


FEW = {"check_regressor_multioutput": "11 rows of 10 columns are too few for straight lines"}


@pytest.mark.slow
@parametrize_with_checks(
    [LinearRegressor(), QuantileRegressor()],
    expected_failed_checks=lambda model: (
        UNEQUAL | FEW if isinstance(model, LinearRegressor) else UNEQUAL
    ),
)
def test_straight_lines_and_single_quantiles_pass_them(estimator: Any, check: Any) -> None:
    checked(estimator, check)


@pytest.mark.slow
@parametrize_with_checks(DEFAULTS, expected_failed_checks=lambda _: UNEQUAL)
def test_they_pass_them_with_their_defaults(estimator: Any, check: Any) -> None:
    checked(estimator, check)


OF_METHODS = [name for name in pi3nn.__all__ if name != "QuantileRegressor"]


@pytest.mark.contract
@pytest.mark.parametrize("name", OF_METHODS)
def test_every_method_has_an_estimator_that_fits_pickles_and_is_cloned(name: str) -> None:
    estimator = getattr(pi3nn, name)
    quick = {"hidden": 4, "steps": 5, "epochs": 2}
    model = estimator(levels=(0.5,), random_state=1)
    model.set_params(**{key: quick[key] for key in quick if key in model.get_params()})
    x, y = rows()
    bounds = clone(model).fit(x, y).predict_interval(x)
    assert bounds.shape == (80, 1, 2)
    copy = pickle.loads(pickle.dumps(model.fit(x, y)))
    assert type(copy) is estimator
    np.testing.assert_array_equal(copy.predict_interval(x), bounds)


def test_estimators_are_those_of_the_methods() -> None:
    assert {getattr(pi3nn, name).kind for name in OF_METHODS} == set(methods.kinds())
    assert PI3NNRegressor.__module__ == "pi3nn.models.estimators"
    message = "^module 'pi3nn' has no attribute 'NothingRegressor'$"
    with pytest.raises(AttributeError, match=message):
        _ = pi3nn.NothingRegressor


def test_the_package_shows_nothing_that_is_not_its_own() -> None:
    shown = {name for name in dir(pi3nn) if not name.startswith("_")}
    folders = {module.name for module in pkgutil.iter_modules(pi3nn.__path__)}
    assert set(pi3nn.__all__) <= shown <= {*pi3nn.__all__, *folders}


@pytest.mark.parametrize("name", pi3nn.__all__)
def test_modules_that_an_estimators_help_names_are_there(name: str) -> None:
    about = getattr(pi3nn, name).__doc__
    for module in re.findall(r"`(pi3nn\.[\w.]+)`", about):
        assert importlib.util.find_spec(module), module


@each
def test_shapes_and_types(quick: Any) -> None:
    x, y = rows()
    model = clone(quick).fit(x, y)
    assert model.predict(x).shape == model.confidence_score(x).shape == (80,)
    interval = model.predict_interval(x)
    assert interval.shape == (80, 2, 2)
    assert model.predict_interval(x, levels=[0.5]).shape == (80, 1, 2)
    assert {model.predict(x).dtype, interval.dtype} == {np.dtype(np.float64)}
    assert (interval[..., 0] <= interval[..., 1]).all()
    assert ((model.confidence_score(x) >= 0) & (model.confidence_score(x) <= 1)).all()


@each
def test_a_pickled_model_predicts_the_same_to_the_last_bit(quick: Any) -> None:
    x, y = rows()
    model = clone(quick).set_params(random_state=3).fit(x, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.predict_interval(x), again.predict_interval(x))
    np.testing.assert_array_equal(model.predict(x), clone(model).fit(x, y).predict(x))


@each
def test_each_of_several_targets_gets_what_it_gets_alone(quick: Any) -> None:
    x, y = rows()
    both = clone(quick).set_params(random_state=1).fit(x, np.column_stack([y, y**2 / 100]))
    assert both.predict_interval(x).shape == (80, 2, 2, 2)
    assert both.predict(x).shape == both.confidence_score(x).shape == (80, 2)
    alone = clone(both).fit(x, y**2 / 100)
    np.testing.assert_array_equal(both.predict_interval(x)[:, 1], alone.predict_interval(x))
    np.testing.assert_array_equal(both.confidence_score(x)[:, 1], alone.confidence_score(x))


@pytest.mark.parametrize("method", ["pi3nn", "qd", "cqr"])
def test_an_estimator_says_what_a_run_with_the_same_settings_and_seed_says(
    tmp_path: Path, method: str
) -> None:
    short = {"pi3nn": {"steps": 25}, "qd": {"epochs": 4}, "cqr": {"epochs": 4}}[method]
    overrides = [f"method.{key}={value}" for key, value in short.items()]
    cfg = composed(
        "experiment=fit", "dataset=yacht", f"method={method}", "method.hidden=8", "levels=[0.9]",
        "save_model=false", "seeds=[5]", f"store={tmp_path}", "workers=1", *overrides,
    )  # fmt: skip
    (member,), _ = run(cfg)
    kept = Store(tmp_path).predictions(member.key)
    scalars = Store(tmp_path).result(member.key)["scalars"]
    split = data.open_dataset("yacht").split(1)
    model = next(m for m in QUICK if m.kind == method)
    model = type(model)(hidden=8, levels=(0.9,), random_state=5, **short)
    interval = model.fit(split.train.x, split.train.y).predict_interval(split.sets["test"].x)
    scaled = ((interval - scalars["y_mean"]) / scalars["y_std"]).astype(np.float32)
    np.testing.assert_allclose(scaled[:, 0, 0], kept["test/lower@0.9"], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(scaled[:, 0, 1], kept["test/upper@0.9"], rtol=1e-6, atol=1e-6)


def test_intervals_of_training_rows_leave_out_exactly_as_many_as_asked() -> None:
    x, y = rows(200)
    model = PI3NNRegressor(steps=50, hidden=8, calibrate="none", widen="none").fit(x, y)
    for gamma, outside in ((0.5, 100), (0.9, 20), (0.95, 10)):
        lower, upper = model.predict_interval(x, levels=[gamma])[:, 0].T
        assert np.count_nonzero((y < lower) | (y > upper)) == outside


def test_units_of_inputs_and_target_do_not_matter() -> None:
    x, y = rows()
    model = clone(QUICK[0]).set_params(random_state=1)
    plain = model.fit(x, y).predict_interval(x)
    scaled = model.fit(x * 1024 - 7, y * 2**20).predict_interval(x * 1024 - 7)
    np.testing.assert_allclose(scaled / 2**20, plain, rtol=1e-4)


def test_far_away_rows_have_a_low_confidence_score_and_finite_intervals() -> None:
    x, y = rows(300)
    model = PI3NNRegressor(random_state=1).fit(x, y)
    far = model.confidence_score(x + 8).mean()
    assert far < 0.5 * model.confidence_score(x).mean()
    assert np.isfinite(model.predict_interval(np.full((1, 3), 1e300))).all()


@pytest.mark.slow
def test_the_defaults_keep_their_promise_on_new_rows_and_flag_far_ones() -> None:
    """Coverage over 20 draws of the data, for the guarantee is one over draws."""
    covered, far, near = [], [], []
    for seed in range(20):
        x, y = rows(400, seed=seed)
        model = PI3NNRegressor(random_state=seed, levels=(0.9,)).fit(x[:200], y[:200])
        lower, upper = model.predict_interval(x[200:])[:, 0].T
        covered.append(((lower <= y[200:]) & (y[200:] <= upper)).mean())
        far.append(model.confidence_score(x[200:] + 6).mean())
        near.append(model.confidence_score(x[200:]).mean())
    assert 0.87 < np.mean(covered) < 0.95
    assert np.mean(far) < 0.6 * np.mean(near)


def test_works_in_pipeline_cross_validation_and_grid_search() -> None:
    x, y = rows()
    model = PI3NNRegressor(steps=20, hidden=8, random_state=1)
    assert make_pipeline(PolynomialFeatures(2), model).fit(x, y).predict(x).shape == (80,)
    assert cross_val_predict(model, x, y, cv=3).shape == (80,)
    search = GridSearchCV(model, {"hidden": np.array([4, 8]), "l1": [0.0, 0.1]}, cv=2).fit(x, y)
    assert search.best_params_["hidden"] in (4, 8)


def test_pandas_columns_are_remembered() -> None:
    x, y = rows()
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    model = clone(QUICK[0]).fit(frame, pd.Series(y))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["c", "b", "a"]])


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (np.zeros((0, 2)), np.zeros(0), "0 sample"),
        (np.zeros((1, 2)), np.zeros(1), "minimum of 2"),
        (np.zeros(5), np.zeros(5), "2D array"),
        (np.zeros((4, 2)), np.zeros(3), "inconsistent numbers"),
        (np.zeros((4, 0)), np.zeros(4), "0 feature"),
        (np.full((4, 2), np.nan), np.arange(4), "NaN"),
        (np.full((4, 2), np.inf), np.arange(4), "infinity"),
        (np.eye(4), np.array([1, 2, np.nan, 4]), "NaN"),
        (np.eye(4), np.full(4, 7.0), "target is the same"),
        (np.array([["a", "b"]] * 4), np.arange(4), "could not convert"),
        (np.array([[1, "b"]] * 4, dtype=object), np.arange(4), "could not convert"),
        (np.eye(4) * 1j, np.arange(4), "[Cc]omplex"),
        (np.zeros((4, 2, 2)), np.arange(4), "dim 3|dimension"),
    ],
)
def test_data_that_make_no_sense_are_refused_in_words(x: Any, y: Any, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        clone(QUICK[0]).fit(x, y)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"levels": (1.5,)}, "between 0 and 1"),
        ({"levels": (0.0,)}, "between 0 and 1"),
        ({"levels": ()}, "empty"),
        ({"levels": "high"}, "numbers between 0 and 1"),
        ({"levels": (0.9, 0.9)}, "twice"),
        ({"hidden": 0}, "more than 0"),
        ({"hidden": "many"}, "hidden='many'"),
        ({"activation": "gelu"}, "one of relu, tanh"),
        ({"calibrate": "conformal", "holdout": 0.0}, "holdout"),
        ({"scaling": "sometimes"}, "scaling='sometimes'"),
        ({"random_state": -1}, "[Ss]eed"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_in_words(
    parameters: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        clone(QUICK[0]).set_params(**parameters).fit(*rows())


def test_too_few_samples_to_calibrate_are_said_to_be() -> None:
    split = {"calibrate": "conformal", "holdout": 0.2, "levels": (0.99,)}
    with pytest.warns(UserWarning, match=r"needs 99 samples.* there are 16: .* not calibrated"):
        clone(QUICK[0]).set_params(**split).fit(*rows())
    with pytest.warns(UserWarning, match=r"needs 199 samples.* there are 80: .* not calibrated"):
        clone(QUICK[0]).set_params(levels=(0.99,)).fit(*rows())
    with pytest.warns(UserWarning, match=r"needs 99 samples.* there are 80: .* not calibrated"):
        clone(QUICK[5]).set_params(levels=(0.99,)).fit(*rows())


def test_levels_that_were_not_trained_for_are_refused_in_words() -> None:
    x, y = rows()
    model = clone(QUICK[1]).fit(x, y)
    with pytest.raises(ValueError, match=r"trained for each level.*0\.5, 0\.8"):
        model.predict_interval(x, levels=[0.9])
    with pytest.raises(ValueError, match="between 0 and 1"):
        clone(QUICK[0]).fit(x, y).predict_interval(x, levels=[2])


def test_a_misspelt_parameter_is_named() -> None:
    with pytest.raises(TypeError, match="did you mean 'hidden'"):
        PI3NNRegressor(hiden=3)


def test_a_training_that_diverges_is_an_error_with_its_reason() -> None:
    with pytest.raises(RuntimeError, match="not finite at step"):
        clone(QUICK[0]).set_params(learning_rate=1e38).fit(*rows())


@pytest.mark.parametrize("kind", ["float16", "float32", "int64", "object", "fortran", "list"])
def test_numbers_of_every_kind_give_the_answer_of_float64(kind: str) -> None:
    source = np.random.default_rng(0)
    x = source.integers(-8, 8, size=(60, 3)).astype(np.float64)
    y = x[:, 0] + source.integers(0, 3, size=60)
    model = clone(QUICK[0]).set_params(random_state=1)
    wanted = model.fit(x, y).predict(x)
    given: Any = {"fortran": np.asfortranarray(x), "list": x.tolist()}.get(kind)
    given = x.astype(kind) if given is None else given
    np.testing.assert_array_equal(model.fit(given, y).predict(given), wanted)


@pytest.mark.parametrize(
    "odd", ["more columns than rows", "duplicates", "constant column", "2 rows"]
)
def test_odd_but_possible_data_give_finite_intervals(odd: str) -> None:
    x, y = rows(20, 50) if odd == "more columns than rows" else rows(40)
    if odd == "duplicates":
        x, y = np.repeat(x[:4], 20, axis=0), np.repeat(y[:4], 20)
    if odd == "constant column":
        x[:, 1] = 1e9
    if odd == "2 rows":
        x, y = x[:2], y[:2]
    assert np.isfinite(clone(QUICK[0]).fit(x, y).predict_interval(x)).all()


@pytest.mark.filterwarnings("ignore:level 0.95 needs 19 samples")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_finite_table_gives_ordered_finite_intervals_or_a_clear_error(data: Any) -> None:
    n = data.draw(st.integers(2, 30), "rows")
    features = data.draw(st.integers(1, 4), "features")
    numbers = st.floats(-1e12, 1e12, allow_subnormal=False)
    x = np.array(data.draw(st.lists(numbers, min_size=n * features, max_size=n * features)))
    y = np.array(data.draw(st.lists(numbers, min_size=n, max_size=n)))
    model = PI3NNRegressor(steps=5, hidden=4, random_state=0)
    try:
        model.fit(x.reshape(n, features), y)
    except ValueError as error:
        if "target is the same" not in str(error):
            raise
        return
    interval = model.predict_interval(x.reshape(n, features))
    assert np.isfinite(interval).all()
    assert (interval[..., 0] <= interval[..., 1]).all()
    assert (interval[:, 1, 0] <= interval[:, 0, 0]).all()


@pytest.mark.parametrize(
    "code",
    [
        "import pi3nn; dir(pi3nn)",
        "from pi3nn.cli.pi3nn_run import help_text; help_text()",
        "from pi3nn.cli.pi3nn_predict import _run; _run(['--help'])",
    ],
)
def test_neither_the_package_nor_help_imports_torch_or_scikit_learn(code: str) -> None:
    check = (
        f"import sys; {code}; sys.exit(bool({{'torch', 'sklearn', 'scipy'}} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, check=False)
    assert done.returncode == 0


def test_importable_inside_another_hydra_job(tmp_path: Path) -> None:
    (tmp_path / "conf.yaml").write_text("x: 1\n")
    (tmp_path / "app.py").write_text(
        "import hydra\n"
        "@hydra.main(version_base='1.3', config_path='.', config_name='conf')\n"
        "def main(cfg):\n"
        "    from hydra.core.hydra_config import HydraConfig\n"
        "    from pi3nn import PI3NNRegressor\n"
        "    print(PI3NNRegressor().hidden, HydraConfig.get().job.name)\n"
        "main()\n"
    )
    command = [sys.executable, "app.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["100", "app"], done.stderr
