"""What people type, put right where it is clear and explained where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi3nn import config
from pi3nn.cli import overrides
from pi3nn.errors import UserError
from tests.support.own_yamls import HOMES, own_folder

WRONG = "hydra.verbose={a: 1}"


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("seeds=3", "seeds=[3]"),
        ("seeds=1,2", "seeds=[1],[2]"),
        ("seeds=range(1,4)", "seeds=[1],[2],[3]"),
        ("levels=[0.9]", "levels=[0.9]"),
        ("dataset.ignore=rent", "dataset.ignore=[rent]"),
        ("dataset.categories=rooms", "dataset.categories=[rooms]"),
        ("sweep={method.hidden: [8]}", "++sweep={method.hidden: [8]}"),
        ("method.hidden=8,9", "method.hidden=8,9"),
        ("seeds=[1", "seeds=[1"),
        ("levels=choice([0.9],[0.8])", "levels=[0.9],[0.8]"),
    ],
)
def test_lists_get_brackets_and_the_rest_stays(typed: str, completed: str) -> None:
    assert overrides.as_hydra_wants(["dataset=boston", typed]) == ["dataset=boston", completed]


def test_what_trains_nothing_leaves_no_folder() -> None:
    for typed in ("plan=true", "explain=Yes", "explain=y", "++plan=1", "+explain=on"):
        assert "hydra.output_subdir=null" in overrides.as_hydra_wants(["dataset=boston", typed])
    for typed in ("plan=false", "explain=n", "plan=maybe"):
        assert overrides.as_hydra_wants([typed]) == [typed]


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("dataset=yacht --cfg job seeds=[1]", "dataset=yacht seeds=[1] --cfg job"),
        ("--info dataset=yacht", "dataset=yacht --info"),
        ("--info defaults dataset=yacht", "dataset=yacht --info defaults"),
        ("-m dataset=yacht -cd a=b", "dataset=yacht -m -cd a=b"),
        ("dataset=yacht --hydra-help", "--hydra-help"),
        ("plan=1 -m", "plan=1 hydra.run.dir=. hydra.output_subdir=null -m"),
    ],
)
def test_overrides_come_before_options(
    typed: str, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b").mkdir()
    assert overrides.as_hydra_wants(typed.split()) == wanted.split()


def test_a_key_can_not_be_taken_away() -> None:
    with pytest.raises(UserError, match="'~sweep' would take away what every run has"):
        overrides.as_hydra_wants(["~sweep", "~hydra.sweep"])


def test_a_table_and_what_starts_from_it_are_fitted_unless_said_otherwise(tmp_path: Path) -> None:
    own_folder(tmp_path, dataset_homes=HOMES)
    folder = f"--config-dir={tmp_path}"
    table = ["dataset=table", "dataset.path=a/rent.csv"]
    assert {"experiment=fit", "method=pi3nn_cross"} < set(overrides.as_hydra_wants(table))
    assert "method=pi3nn_cross" in overrides.as_hydra_wants([*table, "experiment=fit"])
    assert "method=pi3nn_cross" not in overrides.as_hydra_wants([*table, "method=qd"])
    head = "# @package _global_\ndefaults: [fit, _self_"
    own_folder(tmp_path, experiment_strict=f"{head}]\nexperiment: strict\n")
    own_folder(tmp_path, experiment_other=f"{head}, override /method: sqr]\nexperiment: other\n")
    for experiment, added in (("strict", True), ("other", False), ("uci", False)):
        wanted = overrides.as_hydra_wants([*table, f"experiment={experiment}", folder])
        assert ("method=pi3nn_cross" in wanted) is added
    assert overrides.as_hydra_wants(["dataset=boston", folder]) == ["dataset=boston", folder]
    arguments = ["dataset=homes", "experiment=uci", folder]
    assert overrides.as_hydra_wants(arguments) == arguments


@pytest.fixture
def my(tmp_path: Path) -> str:
    """A folder with two tables of one's own, as an option."""
    flats = HOMES.replace("homes", "flats")
    strict = "# @package _global_\ndefaults: [fit, _self_]\nexperiment: strict\n"
    own_folder(tmp_path, dataset_homes=HOMES, dataset_flats=flats, experiment_strict=strict)
    return f"--config-dir={tmp_path}"


@pytest.mark.parametrize(
    "dataset",
    [
        "homes,flats", "choice(homes,flats)", "glob([homes,flats])", "glob(*s,exclude=camels)",
        "'homes','flats'", "sort(homes,flats)", "'homes'", '"homes"',
    ],
)  # fmt: skip
def test_tables_are_fitted_however_they_are_typed(my: str, dataset: str) -> None:
    wanted = overrides.as_hydra_wants([my, "-m", f"dataset={dataset}"])
    assert {"experiment=fit", "method=pi3nn_cross"} < set(wanted)
    for typed in (["method=qd"], ["experiment=uci"], ["experiment=uci,cubic1d"]):
        wanted = overrides.as_hydra_wants([my, "-m", f"dataset={dataset}", *typed])
        assert "method=pi3nn_cross" not in wanted
        assert ("experiment=fit" in wanted) is (typed == ["method=qd"])
    wanted = overrides.as_hydra_wants([my, "-m", f"dataset={dataset}", "experiment=fit,'strict'"])
    assert "method=pi3nn_cross" in wanted


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["dataset=homes,yacht"], "add experiment=fit method=pi3nn_cross for all of them, or run"),
        (["dataset=choice(yacht,homes)", "method=qd"], "add experiment=fit for all of them"),
        (["dataset='homes','yacht'", "experiment=fit"], "add method=pi3nn_cross for all of them"),
        (["dataset=glob(*,exclude=table)"], "is a table of your own, and boston is not"),
        (["dataset=homes", "experiment=fit,uci"], "experiment=uci another method: add method="),
        (
            ["dataset=table,yacht", "dataset.path=a.csv"],
            "which yacht does not have: run them apart",
        ),
    ],
)
def test_what_is_right_for_tables_only_is_not_added_to_other_sets(
    my: str, typed: list[str], words: str
) -> None:
    with pytest.raises(UserError) as refused:
        overrides.as_hydra_wants([my, "-m", *typed])
    assert words in str(refused.value)


def test_a_mix_of_tables_and_others_runs_with_what_is_typed(my: str) -> None:
    arguments = ["dataset=homes,yacht", "experiment=fit", "method=pi3nn_cross", "-m", my]
    assert overrides.as_hydra_wants(arguments) == arguments


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("method=qd,piven method.lambda_in=15", "method.lambda_in=choice(15)"),
        ("method=choice(qd,piven) method.lambda_in=5,15", "method.lambda_in=5,15"),
        ("method=qd,piven method.hidden=5", "method.hidden=5"),  # the default has it, too
        ("method=qd,piven method.nowhere=5", "method.nowhere=5"),  # nobody has it
        ("method=qd method.lambda_in=15", "method.lambda_in=15"),
        ("dataset=homes,flats dataset.target=rent", "dataset.target=choice(rent)"),
        ("dataset=homes,flats dataset.ignore=area", "dataset.ignore=choice([area])"),
        ("experiment=uci,fit method=qd method.lambda_in=5", "method.lambda_in=5"),
        ("experiment=uci,cubic10d encoder.units=3", "encoder.units=choice(3)"),
    ],
)
def test_a_key_that_only_swept_choices_have_is_left_to_the_jobs(
    my: str, typed: str, left: str
) -> None:
    assert left in overrides.as_hydra_wants([my, "-m", *typed.split()])


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("my.csv", "my"),
        ("a/rent.tsv.gz", "rent"),
        ("homes.2020.csv", "homes_2020"),
        ("homes.2021.csv.zip", "homes_2021"),
        ("'a b.parquet'", "a_b"),
        ("plain", "plain"),
    ],
)
def test_a_table_is_named_after_its_file(path: str, name: str) -> None:
    completed = overrides.as_hydra_wants(["dataset=table", f"dataset.path={path}"])
    assert config.composed(*completed).dataset.name == name
    typed = ["dataset=table", f"dataset.path={path}", "dataset.name=other"]
    assert config.composed(*overrides.as_hydra_wants(typed)).dataset.name == "other"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("method.hiden=3", "there is no key 'method.hiden' (did you mean 'method.hidden'?)"),
        ("dataset=bostn", "there is no dataset=bostn (did you mean 'boston'?); choices: "),
        ("seeds=[1", "'seeds=[1' can't be read"),
        ("levls", "'levls' is not of the form key=value (did you mean 'levels'?)"),
        ("dataset.target=[a,b]", "a run has one target"),
        ("explain", "did you mean 'explain=true'?"),
        (
            "method.steps=3 method=linear",
            "method=linear has no key 'method.steps', which is one of pi3nn,",
        ),
        ("dataset=choice(boston,bostn)", "there is no dataset=bostn (did you mean 'boston'?)"),
        ("hydra=foo", "'hydra=foo': hydra= chooses nothing here"),
        ("hydra/nowhere=foo", "'hydra/nowhere=foo': Hydra has no hydra/nowhere="),
        (
            "hydra/launcher=bsic",
            "there is no hydra/launcher=bsic (did you mean 'basic'?); choices: basic",
        ),
        (
            "hydra/sweeper=nevergrad",
            "needs the package hydra-nevergrad-sweeper, which is not installed",
        ),
        ("sweep.method.hidden=[7]", "must be written as 'sweep={method.hidden: [7]}'"),
    ],
)
def test_a_mistake_is_explained_in_one_sentence(typed: str, words: str) -> None:
    assert words in overrides.explain(["--cfg", "job", *typed.split()], ValueError("refused"))
    assert overrides.explain(["--cfg", "job"], ValueError("refused\nframes")) == "refused"


def test_an_unknown_choice_is_explained_wherever_it_stands() -> None:
    said = overrides.explain(["seeds=[1]", "dataset=bostn"], ValueError("refused"))
    assert said.startswith("there is no dataset=bostn (did you mean 'boston'?)")


def test_an_experiment_on_a_data_set_without_its_keys_is_explained() -> None:
    error = ValueError("Interpolation key 'dataset.noise' not found\n    full_key: x")
    said = overrides.explain(["experiment=cubic1d", "dataset=boston"], error)
    assert said.startswith("experiment=cubic1d needs dataset.noise, which dataset=boston does not")


def test_folders_that_were_typed_are_known_with_those_they_are_in() -> None:
    typed = ["hydra.run.dir='/a/b'", "store=/c"]
    assert overrides.typed_folders(typed) == ["/a/b", "/a", "/"]


def test_a_data_set_that_the_experiment_is_not_made_for_is_one_sentence() -> None:
    typed = ["experiment=streamflow", "dataset=boston"]
    with pytest.raises(Exception, match="raised while composing") as caught:
        config.composed(*typed)
    assert overrides.explain(typed, caught.value).startswith(
        "experiment=streamflow sets dataset.window, which the data set chosen does not have: "
    )


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("method=null", "'method=null': method= takes a name, one of cqr"),
        ("dataset=1", "'dataset=1': dataset= takes a name"),
        ("method=qd,1", "method= takes a name"),
        ("method=[qd]", "method= takes a name"),
        ("method=range(1,3)", "method= takes a name"),
        ("method=interval(0,1)", "an interval has no values to run: write them out"),
        ("seeds=interval(0,1)", "an interval has no values to run: write them out"),
        ("hydra/launcher=1e9", "'hydra/launcher=1e9': hydra/launcher= takes a name"),
        ("hydra/sweeper=basic,search", "what is Hydra's own has one value in a command: give one"),
        ("levels={}", "'levels={}': levels= takes a list of numbers, as in levels=[0.95]"),
        ("splits=glob(*)", "splits= takes a list of numbers, as in splits=[1,2,3]"),
        ("hydra.searchpath=[nowhere]", "there is no folder nowhere: name one that has YAMLs in it"),
        ("--resolve", "--resolve belongs to --cfg"),
        ("--package=method", "--package belongs to --cfg"),
        ("--shell-completion", "install=bash"),
        ("--experimental-rerun=config.pickle", "would run what a pickle says"),
        ("--cfg=foo", "invalid choice: 'foo'"),
        ("--run --multirun", "--run and --multirun exclude each other"),
    ],
)
def test_what_hydra_could_not_explain_is_refused_before_it_sees_it(typed: str, words: str) -> None:
    with pytest.raises(UserError) as refused:
        overrides.as_hydra_wants(typed.split())
    assert words in str(refused.value)


def test_what_hydra_says_of_a_key_comes_with_what_was_typed() -> None:
    said = overrides.explain(["encoder.units=3"], AssertionError("Unexpected type for root"))
    assert said == "'encoder.units=3' sets a key of encoder, which is null here: leave it out"
    said = overrides.explain(["dataset=table", "dataset.path=a", WRONG], AssertionError())
    assert said == f"'{WRONG}' can't be used: Hydra takes no such value"


def test_beside_a_mistake_a_choice_of_ones_own_is_not_blamed(tmp_path: Path) -> None:
    own_folder(tmp_path, dataset_homes=HOMES)
    typed = [f"--config-dir={tmp_path}", "dataset=homes", WRONG]
    overrides.as_hydra_wants(typed)
    assert overrides.explain(typed, AssertionError()).startswith(f"'{WRONG}' can't be used")
