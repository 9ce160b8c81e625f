"""``python -m pi3nn run …``: the commands, where their scripts are not on the path."""

from __future__ import annotations

import importlib
import sys

from pi3nn.cli.main import run_command
from pi3nn.errors import UserError

COMMANDS = ("run", "data", "report", "predict")

_HELP = """\
  python -m pi3nn run …       is pi3nn-run …: train, print and store the results
  python -m pi3nn data …      is pi3nn-data …: what data there is
  python -m pi3nn report …    is pi3nn-report …: tables and pages of what was run
  python -m pi3nn predict …   is pi3nn-predict …: intervals for new rows
Each has its --help."""


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_HELP)
        return 0
    name, *others = arguments
    if name not in COMMANDS:
        raise UserError(f"there is no command '{name}': it is one of {', '.join(COMMANDS)}")
    sys.argv = [f"pi3nn-{name}", *others]
    importlib.import_module(f"pi3nn.cli.pi3nn_{name}").main()
    return 0


if __name__ == "__main__":
    run_command("python -m pi3nn", _run)
