"""First on the path of a test's nodes: writes down which stacks they begin to train.

A line of the file PI3NN_NOTES for each: the node's name, the keys, and which of them the store
PI3NN_NOTED_STORE has already.
"""

import importlib.util
import json
import os
import sys
from typing import Any

WATCHED = "pi3nn.run.one_stack"


class Noted:
    """Finds the module as all others are found, and puts a note before its `train`."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name != WATCHED:
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        execute = spec.loader.exec_module

        def execute_and_wrap(module: Any) -> None:
            execute(module)
            module.train = noted(module.train)

        spec.loader.exec_module = execute_and_wrap  # type: ignore[method-assign]
        return spec


def noted(train: Any) -> Any:
    def note_and_train(members: Any, *arguments: Any, **options: Any) -> None:
        from pi3nn.store import Store

        keys = [member.key for member in members]
        stored = sorted(Store(os.environ["PI3NN_NOTED_STORE"]).stored(keys))
        line = json.dumps([os.environ["PI3NN_NODE"], keys, stored]) + "\n"
        with open(os.environ["PI3NN_NOTES"], "a") as notes:
            notes.write(line)
        train(members, *arguments, **options)

    return note_and_train


if "PI3NN_NOTES" in os.environ:
    sys.meta_path.insert(0, Noted())  # type: ignore[arg-type]
