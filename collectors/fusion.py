"""From micro-operations to issue slots: which of them a core fuses.

Top-down counts slots at the point where micro-operations are issued. LLVM's models of Intel cores
count the parts that are joined there one by one (a load and the operation on it, a store's address
and data, a compare and the jump behind it); its models of AMD cores count a load and its operation
as the one macro-operation that it is. The rules below give the slots; they are an estimate.

Source: Intel 64 and IA-32 Architectures Optimization Reference Manual, sections on macro-fusion,
micro-fusion and un-lamination; AMD Software Optimization Guide for Family 19h, branch fusion.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from moe_prof.collectors.llvm_mca_format import McaInstruction

_INTEL_PREFIXES = ("ICX", "SKX", "SKL", "HW", "BW", "SB", "SPR", "ADLP", "LNLP")
_AMD_PREFIXES = ("Zn",)

_FLAG_SETTERS = re.compile(r"^(?:cmp|test|add|sub|and|inc|dec)[bwlq]?$")
_AMD_FLAG_SETTERS = re.compile(r"^(?:cmp|test)[bwlq]?$")
_CONDITIONAL = re.compile(r"^j(?!mp)[a-z]+$")
_INDEXED = re.compile(r"\([^,)]*,[^)]*\)")


def issue_slots(listing: Sequence[McaInstruction], resources: Sequence[str]) -> tuple[float, str]:
    """Slots of one iteration, and a note on how they were counted.

    Args:
        resources: names of the scheduling model's resources, which tell the maker.
    """
    uops = float(sum(instruction.uops for instruction in listing))
    if any(name.startswith(_INTEL_PREFIXES) for name in resources):
        fused = sum(_micro_fused(instruction) for instruction in listing)
        pairs = _macro_fused_pairs(listing, _FLAG_SETTERS)
        return uops - fused - pairs, "issue slots estimated by Intel's fusion rules"
    if any(name.startswith(_AMD_PREFIXES) for name in resources):
        pairs = _macro_fused_pairs(listing, _AMD_FLAG_SETTERS)
        return uops - pairs, "issue slots estimated by AMD's branch fusion"
    return uops, "issue slots taken as micro-operations: no fusion rules known for this core"


def _micro_fused(instruction: McaInstruction) -> int:
    """Micro-operations that share a slot with another one of the same instruction."""
    if instruction.uops < 2:
        return 0
    if instruction.may_store and instruction.may_load:
        return 2 if instruction.uops >= 4 else 1  # load + operation, and address + data
    if instruction.may_store:
        return 1
    if not instruction.may_load:
        return 0
    mnemonic, _, operands = instruction.text.partition(" ")
    indexed = _INDEXED.search(operands) is not None
    separate_destination = mnemonic.startswith("v") and not _is_accumulating(mnemonic)
    return 0 if indexed and separate_destination else 1


def _is_accumulating(mnemonic: str) -> bool:
    """VEX operations whose destination is also a source; they stay fused when indexed."""
    return mnemonic.startswith(("vpdp", "vfmadd", "vfmsub", "vfnmadd", "vfnmsub"))


def _macro_fused_pairs(listing: Sequence[McaInstruction], setters: re.Pattern[str]) -> int:
    """Flag-setting instructions with a conditional jump right behind them."""
    pairs = 0
    for first, second in pairwise(listing):
        setter, jump = first.text.split(" ", 1)[0], second.text.split(" ", 1)[0]
        if setters.match(setter) and _CONDITIONAL.match(jump) and not first.may_store:
            pairs += 1
    return pairs
