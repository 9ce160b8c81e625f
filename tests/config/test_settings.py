"""The tables say what differs; a user's own YAML has the settings of what it starts from."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import DictConfig

from pi3nn import methods, paths
from pi3nn.config import settings
from pi3nn.config.document import read
from pi3nn.config.settings import Layer
from pi3nn.errors import UserError
from tests.support.own_yamls import HOMES, MINE, own_folder
from tests.support.runs import composed

TABLES = sorted((paths.configs() / "settings").glob("*.yaml"))


def test_there_is_one_table_for_all_and_at_most_one_per_kind() -> None:
    names = {path.stem for path in (paths.configs() / "settings").rglob("*") if path.is_file()}
    assert names == {path.stem for path in TABLES}
    assert "all" in names
    assert names <= {"all", *methods.kinds()}


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_table_says_in_which_order_values_win(path: Path) -> None:
    assert "Later ones win:" in path.read_text(encoding="utf-8")


def test_settings_of_a_data_set_win_over_those_of_the_experiment() -> None:
    assert composed("protocol=released", "dataset=yacht").method.steps == 500_000
    assert composed("protocol=released", "dataset=boston").method.steps == 1000


def test_settings_of_a_data_set_hold_in_every_experiment() -> None:
    assert composed("experiment=fit", "dataset=wine", "method=der").method.batch == 32


def test_ood_initialisation_is_off_in_the_uci_experiment_of_the_paper_only() -> None:
    assert composed("dataset=boston").method.ood is False
    assert composed("dataset=boston", "protocol=released").method.ood is True
    assert composed("dataset=boston", "method.ood=true").method.ood is True


def test_a_fit_sees_what_is_out_of_distribution() -> None:
    """What is chosen for UCI data under `paper` is not for one's own table."""
    fit, uci = composed("experiment=fit", "dataset=table").method, composed().method
    chosen = {"steps", "l1", "l2", "bounds_l1", "bounds_l2"}
    assert {key for key in fit if fit[key] != uci[key]} == {"ood", *chosen}
    assert fit.ood
    variant = composed("experiment=fit", "dataset=table", "method=pi3nn_no_ood").method
    assert {key for key in fit if fit[key] != variant[key]} == {"ood", "name"}


def test_a_variant_has_only_the_entries_that_it_inherits() -> None:
    assert composed("method=sqr_free").holdout == 0.2
    assert composed("experiment=flight", "method=sqr").method.epochs == 500
    assert composed("experiment=flight", "method=sqr_free").method.epochs == 5000


# --- YAMLs of a user's own ------------------------------------------------------------------------


def test_an_own_method_has_the_settings_of_what_it_starts_from(tmp_path: Path) -> None:
    own = own_folder(tmp_path, method_mine=MINE)
    mine = composed(own, "method=mine", "protocol=released", "dataset=boston").method
    ours = composed("protocol=released", "dataset=boston").method
    assert {key for key in ours if mine[key] != ours[key]} == {"name", "hidden", "l1"}


def test_what_an_own_method_says_wins_over_tables_and_their_sweep(tmp_path: Path) -> None:
    own = own_folder(tmp_path, method_mine=MINE)
    cfg = composed(own, "method=mine")
    assert (cfg.method.hidden, cfg.method.l1, dict(cfg.sweep)) == (30, 0.5, {})
    assert list(composed("method=pi3nn").sweep) == ["method.hidden"]


def test_the_command_line_wins_over_an_own_method(tmp_path: Path) -> None:
    own = own_folder(tmp_path, method_mine=MINE)
    cfg = composed(own, "method=mine", "method.l1=1", "++sweep={method.hidden: [3, 4]}")
    assert cfg.method.l1 == 1
    assert list(cfg.sweep["method.hidden"]) == [3, 4]


def test_an_own_method_may_sweep_what_it_sets(tmp_path: Path) -> None:
    text = (
        "# @package _global_\ndefaults: [qd@_global_.method, _self_]\nmethod: {name: mine, lambda_in: 1.0}\n"
        "sweep: {method.lambda_in: [1.0, 2.0]}\n"
    )
    cfg = composed(own_folder(tmp_path, method_mine=text), "method=mine")
    assert list(cfg.sweep["method.lambda_in"]) == [1, 2]
    assert list(cfg.sweep["method.soften"]) == [100, 160, 200]


def test_an_own_data_set_has_the_settings_of_what_it_starts_from(tmp_path: Path) -> None:
    rows = "defaults: [energy, _self_]\nlimit: 100\n"
    own = own_folder(tmp_path, dataset_homes=HOMES, dataset_some=rows)
    fit = composed(own, "experiment=fit", "dataset=homes")
    assert fit.calibrate.value == "cross"
    assert (fit.dataset.name, fit.dataset.path) == ("homes", "my.csv")
    some = composed(own, "dataset=some", "method=sqr", "protocol=released").dataset
    assert (some.leak_other_target, some.limit) == (True, 100)


def test_own_experiments_and_protocols_follow_their_chain_too(tmp_path: Path) -> None:
    quick = "# @package _global_\ndefaults: [uci, _self_]\nexperiment: quick\nseeds: [7]\n"
    strict = "# @package _global_\ndefaults: [released, _self_]\nprotocol: strict\nscaling: none\n"
    own = own_folder(tmp_path, experiment_quick=quick, protocol_strict=strict)
    cfg = composed(own, "experiment=quick", "protocol=strict", "method=qd")
    assert (cfg.experiment, cfg.protocol) == ("quick", "strict")
    assert list(cfg.seeds) == [7]
    assert cfg.scaling.value == "none"
    assert list(cfg.sweep["method.hidden"]) == [50, 75, 100]


# --- mistakes in a table --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "sets:\n  bostn: {holdout: 0.1}\n",
            r"qd.yaml:2: there is no dataset 'bostn' \(did you mean",
        ),
        ("ucy:\n  both: {holdout: 0.1}\n", r"qd.yaml:2: there is no experiment 'ucy'"),
        ("variants:\n  mine: {uci: {holdout: 0.1}}\n", r"qd.yaml:2: there is no method 'mine'"),
        ("uci: 3\n", r"qd.yaml:1: below 'uci' stand keys and values, not 3"),
    ],
)
def test_a_name_that_would_never_be_read_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, sentence: str
) -> None:
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "qd.yaml").write_text(text)
    known = {group: settings.choices.our_names(group) for group in settings.choices.GROUPS}
    monkeypatch.setattr(settings.choices, "our_names", known.__getitem__)
    monkeypatch.setattr(settings.paths, "configs", lambda: tmp_path)
    with pytest.raises(UserError, match=sentence):
        settings.blocks.__wrapped__()


def test_values_without_a_protocol_hold_for_both(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("holdout: 0.1\nmethod: {l1: 1}\n")
    document = read(tmp_path / "t.yaml")
    entry = settings._by_protocol(Layer(document.values, document.marks))
    assert entry.values == {"both": {"holdout": 0.1, "method": {"l1": 1}}}


def test_streamflow_has_its_window_and_its_slip_by_protocol() -> None:
    paper, released = (
        composed("experiment=streamflow", "method=pi3nn", f"protocol={name}")
        for name in ("paper", "released")
    )
    assert (released.dataset.window, released.dataset.spin_up) == (45, False)
    assert (paper.method.fix_targets, released.method.fix_targets) == (True, False)
    assert (paper.method.bounds_steps, released.method.bounds_steps) == (None, 600)
    for cfg in (paper, released):
        assert (list(cfg.dataset.train_years), cfg.dataset.test_year) == ([2015, 2016], 2017)


def test_rock_creek_has_the_stored_pair_of_biases_under_released_and_the_rivers_settings_else() -> (
    None
):
    def of(dataset: str, method: str, protocol: str) -> DictConfig:
        names = (f"dataset={dataset}", f"method={method}", f"protocol={protocol}")
        return composed("experiment=streamflow", *names)

    on, off = (of("rock", method, "released") for method in ("pi3nn", "pi3nn_no_ood"))
    assert (on.method.bias, off.method.bias) == (80, 0)
    assert on.method.ood
    assert off.method.ood
    assert (on.dataset.window, on.encoder.epochs, on.method.bounds_steps) == (60, 285, 115)
    assert of("rock", "der", "released").encoder == on.encoder
    rock, river = (of(name, "pi3nn", "paper") for name in ("rock", "streamflow"))
    assert (rock.method, rock.encoder, rock.dataset.window) == (
        river.method, river.encoder, river.dataset.window,
    )  # fmt: skip


def test_a_control_that_trains_on_one_year_has_all_of_its_days() -> None:
    cfg = composed("experiment=streamflow", "dataset=quigley")
    assert cfg.dataset.spin_up
    assert (list(cfg.dataset.train_years), cfg.dataset.test_year) == ([2015], 2016)
