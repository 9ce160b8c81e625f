"""What OmegaConf says of a value that does not fit its key, in words that say what would."""

from __future__ import annotations

import re

from pi3nn.errors import first_line

_TAKES = {
    "int": "a whole number, such as 3",
    "float": "a number, such as 0.5",
    "bool": "true or false",
    "str": "a text",
}
_MESSAGES = (  # how they end, and the type that is meant
    (r"Value '(.*)' of type '\w+' could not be converted to Integer", "int"),
    (r"Value '(.*)' of type '\w+' could not be converted to Float", "float"),
    (r"Value '(.*)' is not a valid bool \(type \w+\)", "bool"),
    (r"Cannot convert '\w+' to string: '(.*)'", "str"),
    (r"Incompatible value '(None)' for field of type '(\w+)'", ""),
    (r"Invalid type assigned: NoneType is not a subclass of (?:int|float|str)\. value: (None)", ""),
)


def in_words(error: BaseException) -> str:
    """The first line of an error of OmegaConf's; of a wrong type, what the key takes."""
    text = re.sub(r"^While dereferencing interpolation '.*?': ", "", first_line(error))
    if found := re.fullmatch(r"field '(.+)' is not Optional", text):
        return f"{found[1]} takes a value, not null"
    for pattern, kind in _MESSAGES:
        if found := re.fullmatch(pattern, text):
            return _takes(kind or _type_in(text), found[1])
    return text


def _type_in(text: str) -> str:
    named = re.search(r"(?:of type '|subclass of )(\w+)", text)
    return named[1] if named else ""


def _takes(kind: str, value: str) -> str:
    shown = "null" if value == "None" else f"'{value}'"
    return f"it takes {_TAKES.get(kind, 'a value')}, not {shown}"
