"""The callgrind format, for KCachegrind: self costs by line, calls with their inclusive costs.

Source: valgrind manual, "Callgrind Format Specification".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from moe_prof import __version__
from moe_prof.collectors.stacks import Frame, Profile, Stack, integer_weights
from moe_prof.hotspots.places import is_compiler_header

_NANOSECONDS = 1e9
_UNKNOWN_FILE = "???"

_Function = tuple[str, str]  # module, name
_Place = tuple[str, int]  # file, line


@dataclass
class _Costs:
    """Costs of one function by place, and of its calls by place and callee."""

    own: dict[_Place, int] = field(default_factory=dict)
    calls: dict[tuple[_Place, _Function], int] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The file of its first place, which stands for the function."""
        places = [*self.own, *(place for place, _ in self.calls)]
        return places[0][0] if places else ""


def write(profile: Profile, title: str) -> str:
    """The text of the file; seconds become whole nanoseconds."""
    scale = _NANOSECONDS if profile.unit == "s" else 1.0
    weights = integer_weights([stack.weight * scale for stack in profile.stacks])
    functions: dict[_Function, _Costs] = {}
    for stack, weight in zip(profile.stacks, weights, strict=True):
        if weight:
            _add(functions, stack, weight)
    event = "Nanoseconds" if profile.unit == "s" else _event_name(profile.unit)
    total = sum(weights)
    lines = [
        "# callgrind format", "version: 1", f"creator: moe-prof {__version__}",
        f"cmd: {_one_line(title)}", "positions: line", f"events: {event}", f"summary: {total}", "",
    ]  # fmt: skip
    for function, costs in functions.items():
        lines += _function_lines(function, costs, functions)
    return "\n".join([*lines, f"totals: {total}", ""])


def _add(functions: dict[_Function, _Costs], stack: Stack, weight: int) -> None:
    frames = [f for f in stack.frames if not (f.inlined and is_compiler_header(f.file))]
    frames = frames or [Frame("[unknown]")]
    leaf = frames[-1]
    own = functions.setdefault(_function(leaf), _Costs()).own
    own[_place(leaf)] = own.get(_place(leaf), 0) + weight
    counted: set[tuple[_Function, _Function]] = set()
    for caller, callee in pairwise(frames):
        key = (_function(caller), _function(callee))
        if key in counted:  # a recursive call: its cost is in the call above already
            continue
        counted.add(key)
        calls = functions.setdefault(key[0], _Costs()).calls
        site = (_place(caller), key[1])
        calls[site] = calls.get(site, 0) + weight


def _function(frame: Frame) -> _Function:
    return (frame.module, frame.function)


def _place(frame: Frame) -> _Place:
    return (frame.file, frame.line or 0)


def _function_lines(
    function: _Function, costs: _Costs, functions: dict[_Function, _Costs]
) -> list[str]:
    module, name = function
    file = costs.file
    lines = [f"ob={_one_line(module)}", f"fl={_file(file)}", f"fn={_one_line(name)}"]
    for (own_file, line), cost in costs.own.items():
        if own_file != file:
            lines += [f"fi={_file(own_file)}", f"{line} {cost}", f"fe={_file(file)}"]
        else:
            lines.append(f"{line} {cost}")
    for ((_, line), callee), cost in costs.calls.items():
        lines += [
            f"cob={_one_line(callee[0])}",
            f"cfi={_file(functions[callee].file if callee in functions else '')}",
            f"cfn={_one_line(callee[1])}",
            "calls=1 0",
            f"{line} {cost}",
        ]
    return [*lines, ""]


def _file(name: str) -> str:
    return _one_line(name) or _UNKNOWN_FILE


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _event_name(unit: str) -> str:
    """Words of letters and digits only."""
    name = "".join(part.capitalize() for part in unit.replace("-", " ").replace("_", " ").split())
    return name or "Samples"
