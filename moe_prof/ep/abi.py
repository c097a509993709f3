"""The structures and functions of ``kernels/include/moe_ep.h`` for ctypes, field by field."""

from __future__ import annotations

from ctypes import POINTER, Structure, c_char, c_double, c_int32, c_int64, c_uint32, c_uint64
from ctypes import c_void_p as Handle

ABI_VERSION = 1
STAGES = (
    "dispatch", "wait_dispatch", "gather", "gmm1", "swiglu", "gmm2", "send", "wait_combine",
    "combine", "shared",
)  # fmt: skip
TRAFFICS = ("memory_read", "memory_written", "cache_read", "cache_written")
OVERLAP, CACHE_FUSED = 1, 2
OK, BAD_ARGUMENT, NO_MEMORY, UNSUPPORTED = 0, 1, 2, 3
TIMEOUT, ABORTED, MISMATCH, BUSY = 16, 17, 18, 19


class CExpert(Structure):
    """``moe_ep_expert``."""

    _fields_ = (
        ("gmm1", Handle), ("gmm1_scale", Handle), ("gmm2", Handle), ("gmm2_scale", Handle),
    )  # fmt: skip


class CSetup(Structure):
    """``moe_ep_setup``."""

    _fields_ = (
        ("h", c_int32), ("n", c_int32), ("local_experts", c_int32), ("experts", POINTER(CExpert)),
        ("n_shared", c_int32), ("shared", POINTER(CExpert)), ("threads", c_int32), ("pin", c_int32),
    )  # fmt: skip


class CInfo(Structure):
    """``moe_ep_engine_info``."""

    _fields_ = (
        ("isa", c_char * 32), ("microkernel", c_char * 64), ("note", c_char * 160),
        ("threads", c_int32), ("mr", c_int32), ("nr", c_int32), ("block_rows", c_int32),
        ("weight_bytes", c_int64), ("scratch_bytes", c_int64),
    )  # fmt: skip


class CCall(Structure):
    """``moe_ep_call``."""

    _fields_ = (
        ("bs", c_int32), ("active", c_int32), ("h", c_int32), ("k", c_int32), ("experts", c_int32),
        ("dtype", c_int32), ("x", Handle), ("expert_ids", Handle), ("expert_scales", Handle),
        ("smooth", Handle), ("share_smooth", Handle), ("output", Handle), ("share_output", Handle),
        ("expert_token_nums", Handle),
    )  # fmt: skip


class CWindow(Structure):
    """``moe_ep_window``."""

    _fields_ = (
        ("bytes", c_int64), ("abort", c_int64), ("cells", c_int64), ("cells_stride", c_int64),
        ("done", c_int64), ("done_stride", c_int64), ("dispatch", c_int64), ("slot_bytes", c_int64),
        ("combine", c_int64), ("row_bytes", c_int64), ("max_bs", c_int32),
    )  # fmt: skip


class CGroup(Structure):
    """``moe_ep_group``."""

    _fields_ = (
        ("rank", c_int32), ("ranks", c_int32), ("bases", POINTER(Handle)), ("layout", CWindow),
        ("epoch", c_uint64), ("setup", c_uint32), ("crowded", c_int32), ("timeout_s", c_double),
    )  # fmt: skip


class CWorkspace(Structure):
    """``moe_ep_workspace``."""

    _fields_ = (
        ("base", Handle), ("bytes", c_int64), ("rows", c_int64), ("shared_rows", c_int64), ("x1",
        c_int64), ("x1_scale", c_int64), ("swap", c_int64), ("x2", c_int64), ("x2_scale",
        c_int64), ("y2", c_int64), ("group_list", c_int64), ("expand_idx", c_int64),
        ("ep_send_count", c_int64),
    )  # fmt: skip


class CSpan(Structure):
    """``moe_ep_span``."""

    _fields_ = (
        ("stage", c_int32), ("expert", c_int32), ("thread", c_int32), ("peer", c_int32),
        ("begin_ns", c_int64), ("end_ns", c_int64),
    )  # fmt: skip


class CRecord(Structure):
    """``moe_ep_record``."""

    _fields_ = (
        ("stage_ns", c_int64 * len(STAGES)), ("bytes", (c_int64 * len(TRAFFICS)) * len(STAGES)),
        ("total_ns", c_int64), ("peer", c_int32), ("stage", c_int32), ("wait_ns", Handle),
        ("spans", POINTER(CSpan)), ("span_capacity", c_int64), ("span_count", c_int64),
    )  # fmt: skip


_CALL, _GROUP, _RECORD = POINTER(CCall), POINTER(CGroup), POINTER(CRecord)
SIGNATURES: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "moe_ep_abi_version": (c_int32, ()),
    "moe_ep_create": (c_int32, (POINTER(CSetup), POINTER(Handle))),
    "moe_ep_info": (c_int32, (Handle, POINTER(CInfo))),
    "moe_ep_destroy": (None, (Handle,)),
    "moe_ep_valid": (c_int32, (_CALL,)),
    "moe_ep_fused": (
        c_int32, (Handle, _CALL, _GROUP, POINTER(CWorkspace), c_int32, _RECORD),
    ),
    "moe_ep_dispatch": (
        c_int32,
        (Handle, _CALL, _GROUP, c_int64, Handle, Handle, Handle, Handle, Handle, POINTER(c_int64),
         _RECORD),
    ),
    "moe_ep_combine": (c_int32, (Handle, _CALL, _GROUP, Handle, Handle, Handle, _RECORD)),
    "moe_ep_abort": (None, (_GROUP,)),
    "moe_ep_route": (
        c_int32, (c_int32, c_int32, c_int32, c_int32, Handle, c_int32, Handle, Handle),
    ),
    "moe_ep_send_rows": (c_int32, (Handle, _CALL, Handle, POINTER(Handle), c_int64, _RECORD)),
    "moe_ep_quantize": (c_int32, (c_int64, c_int32, c_int32, Handle, Handle, Handle, Handle)),
    "moe_ep_gather": (
        c_int32, (c_int32, c_int32, POINTER(Handle), Handle, c_int64, Handle, Handle, _RECORD),
    ),
    "moe_ep_gmm1": (c_int32, (Handle, c_int64, Handle, Handle, Handle, _RECORD)),
    "moe_ep_swiglu": (
        c_int32, (Handle, c_int64, Handle, Handle, Handle, Handle, Handle, _RECORD),
    ),
    "moe_ep_gmm2": (
        c_int32, (Handle, c_int64, Handle, Handle, Handle, c_int32, Handle, _RECORD),
    ),
    "moe_ep_expert_rows": (
        c_int32,
        (Handle, c_int32, c_int32, c_int32, Handle, POINTER(Handle), c_int64, POINTER(Handle),
         c_int64, _RECORD),
    ),
    "moe_ep_shared": (c_int32, (Handle, _CALL, _RECORD)),
    "moe_ep_weighted_sum": (c_int32, (Handle, _CALL, Handle, POINTER(Handle), c_int64, _RECORD)),
    "moe_ep_exp": (None, (c_int64, Handle, Handle)),
    "moe_ep_to_f32": (c_int32, (c_int32, c_int64, Handle, Handle)),
    "moe_ep_from_f32": (c_int32, (c_int32, c_int64, Handle, Handle)),
}  # fmt: skip
