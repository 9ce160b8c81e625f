"""The scripts of the checkout, as modules."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType

from tests.conftest import REPOSITORY

SCRIPTS = REPOSITORY / "scripts"


def script_module(file_name: str) -> ModuleType:
    """A script of the folder ``scripts``, read and not run: its functions can be called."""
    if str(SCRIPTS) not in sys.path:  # as Python has it for the script that it runs
        sys.path.append(str(SCRIPTS))
    name = file_name.removesuffix(".py")
    loader = SourceFileLoader(name, str(SCRIPTS / file_name))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
