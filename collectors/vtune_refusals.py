"""What VTune's complaints mean and what helps: its own words in, one typed error out.

Source: messages of VTune 2018 to 2025 on Linux, as in Intel's user guide ("Troubleshooting") and in
reports of its users.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from moe_prof.errors import MoeProfError, ToolError, UnavailableError

PTRACE_REMEDY = "sudo sysctl kernel.yama.ptrace_scope=0, or sampling in hardware (as root)"
DRIVER_REMEDY = (
    "load VTune's sampling driver (sudo SEPDK/src/insmod-sep, with the user in its group vtune), "
    "or sudo sysctl kernel.perf_event_paranoid=0 for sampling without it"
)
NO_PMU_REMEDY = "--analysis hotspots or threading, which need no counters"


@dataclass(frozen=True, slots=True)
class _Refusal:
    pattern: re.Pattern[str]
    meaning: str
    remedy: str


_REFUSALS = (
    _Refusal(
        re.compile(r"scope of (?:the )?ptrace\b.*limited|ptrace_scope", re.IGNORECASE),
        "VTune may not attach to programs here: kernel.yama.ptrace_scope",
        PTRACE_REMEDY,
    ),
    _Refusal(
        re.compile(
            r"virtual machine|PMU (?:resource|is not)|not (?:applicable|supported).*(?:processor"
            r"|CPU|platform|system)|cannot recognize the processor|VMM|hypervisor",
            re.IGNORECASE,
        ),
        "VTune finds no counters that it can use on this processor",
        NO_PMU_REMEDY,
    ),
    _Refusal(
        re.compile(
            r"Cannot enable Hardware Event-based Sampling|sampling driver|problem with the driver"
            r"|Install Intel.* Sampling Drivers|perf_event_paranoid|driverless",
            re.IGNORECASE,
        ),
        "VTune cannot sample hardware events here: its sampling driver is not loaded",
        DRIVER_REMEDY,
    ),
    _Refusal(
        re.compile(r"license|licence", re.IGNORECASE),
        "VTune finds no licence",
        "use a version of 2021 or later, which needs none",
    ),
    _Refusal(
        re.compile(r"No data to show|Cannot find (?:any )?data|collection (?:is|was) paused"
                   r"|no data (?:is |was )?collected", re.IGNORECASE),
        "VTune collected nothing: the loop was too short, or collection was never resumed",
        "make it longer (a larger scenario); see VTune's own output",
    ),
)  # fmt: skip
_ERROR = re.compile(r"(?:vtune|amplxe(?:-cl)?): (?:Fatal )?Error:\s*(?P<text>.*)")
_WRONG_OPTION = re.compile(
    r"(?:invalid|unknown|unexpected|cannot (?:set|find)).*(?:knob|option|arg)", re.IGNORECASE
)


def refusal(output: str, returncode: int) -> MoeProfError:
    """The error for a VTune that ended with ``returncode``; ``output`` is all that it said.

    Returns:
        UnavailableError where the machine does not offer it, ToolError otherwise.
    """
    errors = "\n".join(match["text"] for match in _ERROR.finditer(output)) or output
    for known in _REFUSALS:
        if known.pattern.search(errors):
            return UnavailableError(f"{known.meaning}; {known.remedy}")
    said = next((line.strip() for line in errors.splitlines() if line.strip()), "no message")
    if _WRONG_OPTION.search(errors):
        return ToolError(f"this VTune does not know an option: {said}; use 2021 or later")
    return ToolError(f"VTune failed with exit code {returncode}: {said}")
