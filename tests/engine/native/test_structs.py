"""The structures have the fields of the C++ ones, in their order and of their sizes."""

import ctypes
import re

import pytest

from pi3nn.engine.native import structs
from pi3nn.engine.native.build import SOURCE

C_TYPES = {"int64_t": ctypes.c_int64, "double": ctypes.c_double}


def fields_in_cpp(file: str, name: str) -> list[tuple[str, type]]:
    """Names and types of the fields of a C++ structure; pointers are void pointers."""
    text = SOURCE.with_name(file).read_text(encoding="utf-8")
    body = text.split(f"struct {name} {{")[1].split("};")[0]
    fields: list[tuple[str, type]] = []
    for line in re.sub("//.*", "", body).split(";"):
        declared = re.match(r"\s*(?:const )?(\w+)(\*?) ?(.+)", line)
        if declared is None:
            continue
        kind, star, names = declared.groups()
        for declarator in names.split(","):
            field, count = re.fullmatch(r"\s*\*?(\w+)(?:\[(\d+)\])?\s*", declarator).groups()  # type: ignore[union-attr]
            is_pointer = bool(star) or "*" in declarator
            of: type = ctypes.c_void_p if is_pointer else C_TYPES[kind]
            fields.append((field, of * int(count) if count else of))
    return fields


@pytest.mark.parametrize(
    ("ours", "file", "name"),
    [
        (structs.TaskStruct, "kernel.cpp", "Task"),
        (structs.OptimiserStruct, "kernel.cpp", "Rule"),
        (structs.StepsStruct, "kernel.cpp", "Course"),
        (structs.LossStruct, "losses.h", "Loss"),
    ],
)
def test_fields_are_those_of_the_kernel(ours: type[ctypes.Structure], file: str, name: str) -> None:
    assert list(ours._fields_) == fields_in_cpp(file, name)
