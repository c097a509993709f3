# Toolchain of a cross build for 64-bit RISC-V with Debian's cross libraries and clang, which finds
# them by itself (apt install clang-19 g++-riscv64-linux-gnu):
#   cmake -S kernels -B build-riscv64 -G Ninja --toolchain kernels/riscv64.cmake \
#     -DCMAKE_CXX_COMPILER=clang++-19
# gcc 14 and later (CMAKE_CXX_COMPILER=riscv64-linux-gnu-g++) has the vector intrinsics too.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(CMAKE_CXX_COMPILER_TARGET riscv64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH /usr/riscv64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
# clang accepts libgomp's pragmas and then runs them on one thread: better none, and said so.
set(MOE_USE_OPENMP OFF CACHE BOOL "Use OpenMP where the compiler has it")
# GNU ld 2.40 crashes on what clang 19 writes for DWARF 5.
set(CMAKE_CXX_FLAGS_INIT -gdwarf-4)
