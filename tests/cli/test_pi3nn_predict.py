"""``pi3nn-predict`` as a person uses it, from the training of a model on."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pi3nn import atomic
from pi3nn.cli.pi3nn_predict import main
from pi3nn.models import prediction
from tests.support.own_table import QUICK, own_run
from tests.support.runs import exit_code
from tests.support.tables import homes
from tests.support.waiting import wait_for

FLAG = ["confidence", "ood_p", "ood_by", "ood"]
ADDED = ["prediction", "lower_0.9", "upper_0.9", "lower_0.95", "upper_0.95", *FLAG]


def train(folder: Path, table: pd.DataFrame, *arguments: str) -> Path:
    _, said = own_run(folder, *QUICK, *arguments, table=table)
    (line,) = [line for line in said.splitlines() if line.startswith("Predict with: ")]
    command, model, *_ = shlex.split(line.removeprefix("Predict with: "))
    assert command == "pi3nn-predict"
    folder = folder / "results" / "fit" / "homes-price"
    assert Path(model.removeprefix("model=")).is_relative_to(folder)
    return Path(model.removeprefix("model="))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "it's a folder"  # what a shell must be told
    folder.mkdir()
    return train(folder, homes(400))


def predict(model: Path, table: pd.DataFrame, folder: Path, *arguments: str) -> pd.DataFrame:
    table.to_csv(folder / "new.csv", index=False)
    out = folder / "out.csv"
    code = exit_code(
        main, f"model={model}", f"data={folder / 'new.csv'}", f"output={out}", *arguments
    )
    assert code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["new.csv", "out.csv"]
    return pd.read_csv(out)


def test_every_row_comes_back_with_its_prediction_in_original_units(
    model: Path, tmp_path: Path
) -> None:
    new = homes(50)
    out = predict(model, new, tmp_path)
    assert list(out) == [*new, *ADDED]
    pd.testing.assert_frame_equal(out[list(new)], new, check_dtype=False)
    assert out["prediction"].between(100, 500).mean() > 0.9
    assert (out["lower_0.95"] <= out["lower_0.9"]).all()
    assert (out["upper_0.9"] <= out["upper_0.95"]).all()
    assert out["confidence"].between(0, 1).all()
    assert out["ood"].dtype == bool


def test_other_levels_need_no_training(model: Path, tmp_path: Path) -> None:
    out = predict(model, homes(20), tmp_path, "levels=[0.5]")
    assert list(out)[-7:] == ["prediction", "lower_0.5", "upper_0.5", *FLAG]


def test_order_of_columns_further_columns_and_the_target_do_not_matter(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = homes(20)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    plain = predict(model, new, tmp_path / "a")
    other = predict(model, new[["new", "city", "area"]].assign(note="x"), tmp_path / "b")
    pd.testing.assert_frame_equal(plain[ADDED], other[ADDED])
    assert "not looked at: note" in capsys.readouterr().err


def test_pieces_give_what_the_whole_gives(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    whole = predict(model, homes(100), tmp_path / "a")
    monkeypatch.setattr(prediction, "ROWS", 7)
    pd.testing.assert_frame_equal(predict(model, homes(100), tmp_path / "b"), whole)


def test_an_unseen_category_is_flagged_and_counted(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = homes(20)
    new.loc[3, "city"] = "Lima"
    out = predict(model, new, tmp_path, "threshold=0")
    assert list(np.flatnonzero(out["ood"])) == [3]
    assert list(np.flatnonzero(out["ood_by"] == "category")) == [3]
    assert "1 row(s) have a category that training never saw" in capsys.readouterr().err


def test_the_threshold_decides_who_is_flagged(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = predict(model, homes(40), tmp_path, "threshold=0.3")
    np.testing.assert_array_equal(out["ood"], out["ood_p"] < 0.3)
    assert out["ood"].any()
    assert "ood: an ood_p below 0.3, as 30 % of rows like the training rows have" in (
        capsys.readouterr().err
    )


def test_a_row_far_from_all_others_is_flagged_and_it_says_why(model: Path, tmp_path: Path) -> None:
    new = homes(20)
    new.loc[7, "area"] = 5000.0
    out = predict(model, new, tmp_path)
    assert out["ood"].iloc[7]
    assert out["ood_by"].iloc[7] in ("distance", "disagreement")
    assert out["ood_p"].iloc[7] == pytest.approx(1 / 361)  # of 360 training rows none is as odd


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop(columns="area"), "lacks 'area'"),
        (lambda t: t.rename(columns={"area": "Area"}), "lacks 'area'"),
        (lambda t: t.assign(area="large"), "row 1, column 'area': 'large' is not a number"),
        (lambda t: t.assign(area=np.inf), "infinite"),
        (lambda t: t.assign(area=np.nan), "row 1, column 'area': the value is missing"),
        (lambda t: t.assign(new=2), "row 1, column 'new': '2' is neither true nor false"),
        (lambda t: t.assign(ood=1), "has a column 'ood'"),
        (lambda t: t.head(0), "no rows"),
    ],
)
def test_a_table_unlike_the_training_table_is_one_sentence_and_leaves_nothing(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: object, words: str
) -> None:
    assert callable(change)
    change(homes(20)).to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    code = exit_code(main, f"model={model}", f"data={tmp_path / 'new.csv'}", f"output={out}")
    said = capsys.readouterr().err
    assert (code, len(said.strip().splitlines())) == (2, 1)
    assert words in said
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_a_table_without_rows_never_aborts_the_command(model: Path, tmp_path: Path) -> None:
    """Ten at once: on busy cores the threads of a library end at odd moments."""
    homes(20).head(0).to_csv(tmp_path / "zero.csv", index=False)
    keys = [f"model={model}", f"data={tmp_path / 'zero.csv'}"]
    command = [sys.executable, "-c", "from pi3nn.cli.pi3nn_predict import main; main()", *keys]
    started = [
        subprocess.Popen(
            [*command, f"output={tmp_path / f'{number}.csv'}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(10)
    ]
    said = f"pi3nn-predict: {tmp_path / 'zero.csv'} has no rows below its header\n"
    for process in started:
        assert process.communicate()[0] == said
        assert process.returncode == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["model=m", "data=d.csv"], "output= is missing"),
        (["modle=m"], "did you mean 'model'"),
        (["m"], "not of the form key=value"),
        (["model=m", "model=n"], "given twice"),
        (["model=m", "data=d.csv", "output=o.txt"], "must end in .csv"),
        (["model=m", "data=d.csv", "output=d.csv"], "same file"),
        (["model=m", "data=d.csv", "output=o.csv", "levels=[high]"], "must be a number"),
        (["model=m", "data=d.csv", "output=o.csv", "threshold=low"], "must be a number"),
        (["model=m", "data=d.csv", "output=o.csv", "threshold=5"], "between 0 and 1"),
        (["model=/nowhere", "data=d.csv", "output=o.csv"], "no model in /nowhere"),
        (["MODEL", "data=/nowhere.csv", "output=o.csv"], "can't read /nowhere.csv"),
        (["MODEL", "data=DATA", "output=/nowhere/o.csv"], "can't write /nowhere/o.csv"),
        (["MODEL", "data=DATA", "output=o.csv", "levels=[1.5]"], "between 0 and 1"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    homes(20).to_csv(tmp_path / "new.csv", index=False)
    known = {"MODEL": f"model={model}", "data=DATA": f"data={tmp_path / 'new.csv'}"}
    code = exit_code(main, *(known.get(argument, argument) for argument in arguments))
    said = capsys.readouterr().err
    assert (code, len(said.strip().splitlines())) == (2, 1)
    assert words in said


@pytest.mark.parametrize("rule", ["drop", "mean"])
def test_missing_values_follow_the_rule_of_the_training(tmp_path: Path, rule: str) -> None:
    folder, new = tmp_path / "out", homes(20)
    folder.mkdir()
    table = homes(300)
    table.loc[5, "area"] = None
    model = train(tmp_path, table, f"dataset.missing={rule}")
    new.loc[3, "city"] = None
    out = predict(model, new, folder)
    assert len(out) == 20
    assert out[ADDED].isna().all(axis=1).sum() == (1 if rule == "drop" else 0)


def test_help_fits_on_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(main, "--help") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 42
    assert max(map(len, lines)) <= 100


@pytest.mark.slow
def test_memory_stays_flat_however_long_the_file_is(model: Path, tmp_path: Path) -> None:
    code = (  # VmHWM and not ru_maxrss, which a process inherits from the one that started it
        "import sys; from pi3nn.cli.pi3nn_predict import _run; _run(sys.argv[1:]); "
        "print([line for line in open('/proc/self/status') if 'VmHWM' in line][0].split()[1])"
    )
    peaks = []
    for copies in (4000, 12000):  # 45 and 135 MB
        text = homes(400).to_csv(index=False)
        header, rows = text.split("\n", 1)
        (tmp_path / "new.csv").write_text(header + "\n" + rows * copies)
        arguments = [
            f"model={model}",
            f"data={tmp_path / 'new.csv'}",
            f"output={tmp_path / 'o.csv'}",
        ]
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout.split()[-1]))
    assert peaks[1] < peaks[0] + 40_000, f"kB: {peaks}"


def test_what_a_killed_one_left_half_written_is_removed_by_the_next_and_nothing_else(
    model: Path, tmp_path: Path
) -> None:
    pd.concat([homes(200)] * 100).to_csv(tmp_path / "many.csv", index=False)
    homes(50).to_csv(tmp_path / "new.csv", index=False)
    in_pieces = (
        "from pi3nn.models import prediction; prediction.ROWS = 20; "
        "from pi3nn.cli.pi3nn_predict import main; main()"
    )
    arguments = [f"model={model}", "data=many.csv", "output=many-out.csv"]
    killed = subprocess.Popen([sys.executable, "-c", in_pieces, *arguments], cwd=tmp_path)
    wait_for(lambda: any(map(is_written, tmp_path.glob(f"{atomic.TEMPORARY}*"))), 60)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    (left,) = tmp_path.glob(f"{atomic.TEMPORARY}*")
    assert not (tmp_path / "many-out.csv").exists()
    others = [
        atomic.temporary_name("out.csv"),  # of a process that lives: this one
        left.name.replace(str(killed.pid), "1").replace("-1-", "_elsewhere-1-"),
        f"{atomic.TEMPORARY}notes",
    ]
    for name in others:
        (tmp_path / name).write_text("kept")
    data, output = tmp_path / "new.csv", tmp_path / "out.csv"
    assert exit_code(main, f"model={model}", f"data={data}", f"output={output}") == 0
    assert set(os.listdir(tmp_path)) == {*others, "many.csv", data.name, output.name}
    assert len(pd.read_csv(output)) == 50


def is_written(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0
