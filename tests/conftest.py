"""What all tests share: the data mirror, one torch thread, and no silent skips in CI."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent

# What a shell starts in the background ignores Ctrl-C, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def mirror() -> Callable[[str], Path]:
    """A function from a data file's name to its path in the mirror.

    The mirror is ``PI3NN_DATA_MIRROR``, or ``../shared/data`` beside the checkout. Without one the
    test is skipped; a mirror that lacks the file is a failure, not a skip.
    """
    root = Path(
        os.environ.get("PI3NN_DATA_MIRROR") or REPOSITORY.parent / "shared" / "data"
    ).absolute()

    def find(name: str) -> Path:
        if not root.is_dir():
            pytest.skip(
                f"needs the data file {name}: set PI3NN_DATA_MIRROR to a folder that has it"
            )
        assert (root / name).is_file(), f"the data mirror lacks {name}"
        return root / name

    return find


@pytest.fixture(params=["native", "torch"])
def each_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test twice: with the native engine where it serves, and with PyTorch throughout."""
    from pi3nn.engine import nets

    if request.param == "torch":
        monkeypatch.setattr(nets, "kernel_for", lambda *_: None)
    return str(request.param)


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A command run in this process sets up logging, to a stream that ends with its test; and Hydra may
    have been told to silence it."""
    root, ours = logging.getLogger(), logging.getLogger("pi3nn")
    logging.disable(logging.NOTSET)
    root.disabled = ours.disabled = False
    root.setLevel(logging.WARNING)
    ours.setLevel(logging.NOTSET)
    ours.propagate = True
    handlers = {logger: list(logger.handlers) for logger in (root, ours)}
    yield
    for logger, before in handlers.items():
        logger.handlers[:] = before


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test counts as failed: there everything a test needs is at hand."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
