# SPDX-License-Identifier: MIT
#
# aarch64-linux-gnu.cmake - Debian's cross compiler, programs run by qemu-user.
#
# Packages: gcc-aarch64-linux-gnu, qemu-user, libcmocka-dev:arm64, and for the
# tests in C++ g++-aarch64-linux-gnu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
find_program(aarch64_cxx aarch64-linux-gnu-g++)
if(aarch64_cxx) # only some tests are in C++
    set(CMAKE_CXX_COMPILER "${aarch64_cxx}")
    # That package's runtime library is not where programs look for it.
    set(CMAKE_EXE_LINKER_FLAGS_INIT -static-libstdc++)
endif()

# Packages of that architecture only, never the host's.
set(ENV{PKG_CONFIG_LIBDIR}
    "/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig")
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)

# Without an emulator everything still configures and builds.
find_program(qemu_aarch64 NAMES qemu-aarch64 qemu-aarch64-static)
if(qemu_aarch64)
    set(CMAKE_CROSSCOMPILING_EMULATOR "${qemu_aarch64}")
endif()
