"""Names of C++ functions, short enough for a table: no return type, no parameters, no template
arguments that are long. Rows and exports keep the whole names.
"""

from __future__ import annotations

import re

LONGEST_ARGUMENTS = 24

_ANONYMOUS = "(anonymous namespace)::"
_CLONE = re.compile(r"(?: \[clone [^\]]*\])+$")
_OPERATOR = re.compile(r"\boperator\s*(?:\(\)|<<=?|>>=?|<=>|<=?|>=?|->\*?)")
_OPEN, _CLOSE = "<(", ">)"


def short_name(function: str) -> str:
    """The name to show; the name itself where its brackets do not match."""
    name = _CLONE.sub("", function).replace(_ANONYMOUS, "")
    if _OPERATOR.search(name) or not _balanced(name):
        return name
    end = len(name)
    depth = 0
    for index, character in enumerate(name):
        if character == "(" and depth == 0 and index:
            end = index
            break
        depth += (character in _OPEN) - (character in _CLOSE)
    qualified = name[:end]
    return _without_return_type(_with_short_arguments(qualified)) + _lambda_tail(name[end:])


def _balanced(name: str) -> bool:
    return name.count("<") == name.count(">") and name.count("(") == name.count(")")


def _lambda_tail(rest: str) -> str:
    """What stands behind the parameters: a lambda within the function."""
    match = re.search(r"\)(?: const)?(::\{lambda\b.*?\}|::\w+)", rest)
    return re.sub(r"\([^()]*\)", "", match[1]) if match else ""


def _with_short_arguments(name: str) -> str:
    """Template arguments that are long become dots."""
    parts, depth, begin = [], 0, 0
    for index, character in enumerate(name):
        if character == "<":
            if depth == 0:
                parts.append(name[begin:index])
                begin = index
            depth += 1
        elif character == ">":
            depth -= 1
            if depth == 0:
                arguments = name[begin : index + 1]
                parts.append(arguments if len(arguments) <= LONGEST_ARGUMENTS else "<...>")
                begin = index + 1
    return "".join([*parts, name[begin:]])


def _without_return_type(name: str) -> str:
    """The last word outside of angle brackets."""
    depth = 0
    for index in range(len(name) - 1, -1, -1):
        depth += (name[index] == ">") - (name[index] == "<")
        if name[index] == " " and depth == 0:
            return name[index + 1 :]
    return name
