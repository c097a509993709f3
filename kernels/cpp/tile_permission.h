// Linux's permission to use AMX tiles, which a process has to ask for once; threads inherit it.
//
// Source: Linux, Documentation/arch/x86/xstate.rst. Refusals seen in the field: ENOSYS and EINVAL (a
// kernel before 5.16, or a sandbox's), EOPNOTSUPP (the kernel does not use the state), EPERM and
// EACCES (a filter on system calls), ENOSPC (a signal stack that is too small for the state).
#pragma once

#include <cerrno>

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define MOE_TILE_REQUEST "arch_prctl(ARCH_REQ_XCOMP_PERM, 18)"

namespace moe {

// 0 when tiles may be used, else the error number of MOE_TILE_REQUEST.
static inline int request_tiles() {
#if defined(__linux__) && defined(__x86_64__)
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? 0 : errno;
#else
    return ENOSYS;
#endif
}

} // namespace moe
