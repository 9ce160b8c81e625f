"""Random command lines: every key of every group, every option of every command, odd values."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Iterator, Sequence

from pi3nn import config, data, methods
from pi3nn.engine import lstm

LONG = "x" * 300  # longer than a name may be in any file system

ODD_VALUES = (
    "", "null", "~", "???", "foo", "1", "0", "-1", "3.7", "1e-300", "1e300", "inf", "-inf", "nan", "1e400",
    "true", "no", "1_000", "0x10", "12345678901", "99999999999999999999", "-9223372036854775809",
    "[]", "[1]", "[-1]", "[1,1]", "[[1]]", "[null]", "[nan]", "[inf]", "[foo]", "[true]", "[1.5]", "[{}]",
    "[99999999999999999999]", "{}", "{a: 1}", "{a: {b: []}}", "{method.hidden: [1]}",
    "{method.hidden: 3}", "{method.hidden: [many]}", "{seeds: [1]}", "{1: [2]}",
    "glob(*)", "range(1,3)", "choice(1,2)", "choice()", "interval(0,1)", "shuffle(1,2)", "sort(2,1)",
    "int(3.7)", "float(foo)", "1,2", "foo,bar", "${seeds}", "${nowhere}", "${method.hidden}", "${oc.env:NOWHERE}",
    "${", "}", "[1", "'", "'a b'", '"', "a b", "a=b", "=", "\\", "$", "@", ":", "#", "..", "../up", ".", "/", "/dev/null",
    "/proc/nowhere", "a/b/c", "naïve", "日本", "<b>", "&", "%s", "{0}", "\t", "\n", LONG, f"{LONG}.csv",
)  # fmt: skip

NUMBERS = (
    "-1", "0", "1", "2", "7", "100", "2147483647", "2147483648", "4294967296", "-1e-9", "1e-12", "0.5", "0.999",
    "1.0", "1.5", "1e30", "1e38", "1e300", "inf", "-inf", "nan", "[1,2]", "[0.5,0.9]", "[7,1e30]", "1e9", "100000000",
)  # fmt: skip

OWN_FILES = (
    "own.csv",
    "missing.csv",
    "own.txt",
    "folder",
    "empty.csv",
    "own.csv.gz",
    "own.parquet",
)

HYDRA_KEYS = (
    "hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir", "hydra.output_subdir", "hydra.job.name",
    "hydra.job.chdir", "hydra.mode", "hydra.verbose", "hydra.searchpath", "hydra/launcher", "hydra/sweeper",
    "hydra.sweeper.params", "hydra.sweeper.shards", "hydra.launcher", "hydra", "hydra/job_logging", "hydra.nowhere",
)  # fmt: skip

HYDRA_OPTIONS = (
    ["--cfg"], ["--cfg", "job"], ["--cfg", "hydra"], ["--cfg", "foo"], ["--cfg", "job", "--resolve"],
    ["--resolve"], ["--package", "method"], ["--cfg", "job", "--package", "nowhere"], ["--run"], ["-r"], ["-m"],
    ["--multirun"], ["--info"], ["--info", "defaults"], ["--info", "foo"], ["--version"], ["--hydra-help"],
    ["--help"], ["-h"], ["--shell-completion"], ["-sc"], ["-sc", "install=bash"], ["--config-dir", "."],
    ["--config-dir", "nowhere"], ["--config-dir"], ["--config-name", "config"], ["--config-name", "foo"],
    ["--config-name"], ["--config-path", "."], ["--config-path"], ["--experimental-rerun", "config.pickle"],
    ["--experimental-rerun"], ["--nowhere"], ["-x"], ["--"], ["-"], ["--cfg=job"], ["-cjob"], ["-mm"],
)  # fmt: skip


FOUND = [
    ["pi3nn_run", *typed.split()]
    for typed in (
        "levels=[[1]]", "levels={}", "seeds={}", "splits=glob(*)", "dataset=cubic10d dataset.shifts=[nan]",
        "experiment=flight dataset=table", "--resolve", "--experimental-rerun", "--shell-completion",
        "method.learning_rate=inf", "dataset=table dataset.path=own.csv dataset.target=y dataset.ignore=[nowhere]",
        "method=der dataset=cubic10d dataset.test_rows=2147483647", "method.hidden=many", "hydra/launcher=foo",
        "-m dataset=table,yacht dataset.path=own.csv", "-m hydra/sweeper=optuna", "hydra/nowhere=foo", "hydra=foo",
        "-m method=linear,qd method.lambda_in=15", "hydra.sweeper.nowhere=1", "method.hidden=null",
        "method=pi3nn_cross calibrate=cross method.most_rows=7", "method=pi3nn_cross dataset=energy levels=0.999", "method.steps=${seeds}",
        "experiment=cubic10d_tuning dataset=cubic1d protocol=released", "method.hidden.below=1", "dataset=yacht -", "workers=[1]",
        "-m hydra/launcher=basic,ray", "-m dataset=choice(yacht,nowhere)",
    )
] + [["pi3nn_report", "records", "--output", "."]]  # fmt: skip
"""Lines that once ended in a traceback, or in no sentence."""


def choosable(group: str) -> list[str]:
    """What stands behind ``<group>=``; no data set that would have to be downloaded."""
    far = ("flight", "streamflow", "rock", "quigley")
    return [name for name in config.names(group) if name not in far]


@functools.cache
def keys() -> tuple[str, ...]:
    """Every key of every group: of the run, of each method and data source, of the encoder, Hydra's."""
    of_run = [f.name for f in dataclasses.fields(config.RunConfig)]
    of_methods = {
        f.name for kind in methods.kinds() for f in dataclasses.fields(methods.get(kind).Settings)
    }
    of_data = {f.name for s in data.sources() for f in dataclasses.fields(data.source(s).Settings)}
    return (
        *of_run,
        *sorted(f"method.{name}" for name in of_methods),
        *sorted(f"dataset.{name}" for name in of_data),
        *(f"encoder.{f.name}" for f in dataclasses.fields(lstm.Settings)),
        *HYDRA_KEYS,
    )


@functools.cache
def _keys_of(group: str, name: str) -> tuple[str, ...]:
    """The keys that one choice of a method or data set has."""
    schema = config.schema_of(group, name)
    assert schema is not None
    settings = (methods.get(schema) if group == "method" else data.source(schema)).Settings
    return tuple(f"{group}.{f.name}" for f in dataclasses.fields(settings))


def of_run(seed: int) -> Iterator[list[str]]:
    """Endless command lines of ``pi3nn-run``: choices that make sense, then one to three oddities.

    Every key meets every value in the long run; the first of them are all keys in turn.
    """
    rng = random.Random(seed)
    in_turn = rng.sample(keys(), len(keys()))
    while True:
        yield _line(rng, in_turn.pop() if in_turn else None)


def of_runs_that_train(seed: int) -> Iterator[list[str]]:
    """Endless command lines of ``pi3nn-run`` that train, where they are not refused, for a moment."""
    rng = random.Random(seed)
    while True:
        method = rng.choice(("pi3nn", "linear", "qd", "der"))
        line = [f"method={method}", "dataset=yacht", "splits=1", "seeds=1", "workers=1", "memory=1"]
        line += [f"method.{key}={value}" for key, value in _SHORT[method].items()]
        chosen = rng.choice((*_keys_of("method", method), "dataset.name", "store", *HYDRA_KEYS[:4]))
        line.append(_override(rng, chosen))
        if rng.random() < 0.3:
            line += rng.choice(HYDRA_OPTIONS)
        yield line


_SHORT = {
    "pi3nn": {"hidden": 5, "steps": 20},
    "linear": {},
    "qd": {"hidden": 5, "epochs": 2, "lambda_in": 15, "soften": 160},
    "der": {"hidden": 5, "epochs": 2},
}


def _line(rng: random.Random, key: str | None) -> list[str]:
    method, dataset = rng.choice(choosable("method")), rng.choice(choosable("dataset"))
    line = [f"method={method}", f"dataset={dataset}"]
    if dataset == "table":
        line += ["dataset.path=own.csv", "dataset.target=y"]
    if rng.random() < 0.3:
        line.append(f"experiment={rng.choice(choosable('experiment'))}")
    if rng.random() < 0.3:
        line.append(f"protocol={rng.choice(choosable('protocol'))}")
    own = [*_keys_of("method", method), *_keys_of("dataset", dataset)]
    for number in range(rng.choice((1, 1, 1, 2, 3))):
        chosen = key if key and number == 0 else rng.choice(own if rng.random() < 0.6 else keys())
        line.append(_override(rng, chosen))
    if rng.random() < 0.12:
        line += rng.choice(HYDRA_OPTIONS)
    return line


def _override(rng: random.Random, key: str) -> str:
    if rng.random() < 0.03:
        key = f"{rng.choice(('+', '++', '~', '~', '@', '.'))}{key}"
    elif rng.random() < 0.03:
        key = rng.choice(
            (f"{key}.below", key[:-1], f"{key}x", key.upper(), f"{key}@other", f"{key}[0]")
        )
    if rng.random() < 0.02:
        return key
    value = rng.choice(NUMBERS if rng.random() < 0.4 else ODD_VALUES)
    if key.startswith("dataset.path") and rng.random() < 0.5:
        value = rng.choice(OWN_FILES)
    if rng.random() < 0.1:
        value = f"[{value},{rng.choice(ODD_VALUES)}]"
    return f"{key}={value}"


# --- the other commands --------------------------------------------------------------------------

_PREDICT = ("model", "data", "output", "levels", "threshold")
_REPORT = (
    ["records"], ["records", "--output"], ["records", "--store"], ["run"], ["run", "--output"], ["paper"],
    ["paper", "--protocol"], ["paper", "--compare"], ["paper", "folder", "--compare"], ["paper", "--output"],
    ["verify"], ["verify", "--store"], ["verify", "--seal"], ["verify", "--clear"],
    ["verify", "--seal", "--clear", "--store"], ["sweep"], ["predictions"], ["predictions", "--output"],
    ["predictions", "folder"], ["score"], ["score", "own.csv", "target=y", "lower=a", "upper=b", "level=0.9"],
    ["score", "own.csv", "target=y"], ["mlflow"], ["mlflow", "folder", "--uri"], ["mlflow", "--uri"], [],
)  # fmt: skip
_DATA = (
    ["list"],
    ["fetch"],
    ["show"],
    ["show", "boston"],
    ["show", "boston", "--plot"],
    ["show", "--plot"],
    [],
)


def of_others(seed: int) -> Iterator[tuple[str, list[str]]]:
    """Endless command lines of the other commands: the module of the command, its arguments."""
    rng = random.Random(seed)
    while True:
        yield rng.choice((_of_predict, _of_report, _of_data))(rng)


def _of_predict(rng: random.Random) -> tuple[str, list[str]]:
    sensible = {"model": "model", "data": "own.csv", "output": "out.csv"}
    for key in rng.sample(_PREDICT, rng.choice((1, 1, 2))):
        sensible[key] = _odd(rng)
    return "pi3nn_predict", _shaken(rng, [f"{key}={value}" for key, value in sensible.items()])


def _of_report(rng: random.Random) -> tuple[str, list[str]]:
    words = [*rng.choice(_REPORT), *(_odd(rng) for _ in range(rng.choice((0, 1, 1, 2))))]
    if rng.random() < 0.3:
        column = rng.choice(("dataset", "gamma", "split", "method.hidden", "reason", "nowhere", ""))
        words.append(f"{column}={_odd(rng)}")
    return "pi3nn_report", _shaken(rng, words)


def _of_data(rng: random.Random) -> tuple[str, list[str]]:
    return "pi3nn_data", _shaken(
        rng, [*rng.choice(_DATA), *(_odd(rng) for _ in range(rng.choice((0, 1))))]
    )


def _odd(rng: random.Random) -> str:
    return rng.choice((*ODD_VALUES, *OWN_FILES, "store", "model"))


def _shaken(rng: random.Random, words: Sequence[str]) -> list[str]:
    """Now and then a word too few, too many, or twice."""
    words = list(words)
    if words and rng.random() < 0.1:
        words.remove(rng.choice(words))
    if words and rng.random() < 0.1:
        words.append(rng.choice(words))
    if rng.random() < 0.1:
        words.insert(
            rng.randrange(len(words) + 1),
            rng.choice(("--nowhere", "-x", "--help", "--output", "--")),
        )
    return words
