# SPDX-License-Identifier: MIT
#
# platform.cmake - which files fit the machine, and which flags the compiler.
#
# Everything is asked of the target compiler, by compiling or linking, never
# by running a program or by looking at the host: cross builds need nothing
# more. Sets
#   context_source, context_libraries   how fibers are switched
#   poller_source                       what descriptors are waited for with
#   parataxis_warnings, parataxis_hardening
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CMakePushCheckState)

foreach(choice CONTEXT POLLER)
    get_property(allowed CACHE PARATAXIS_${choice} PROPERTY STRINGS)
    if(NOT PARATAXIS_${choice} IN_LIST allowed)
        list(JOIN allowed ", " allowed)
        message(FATAL_ERROR "PARATAXIS_${choice} is "
            "'${PARATAXIS_${choice}}', not one of: ${allowed}")
    endif()
endforeach()

# --- Switching ---------------------------------------------------------------

set(context_source)
set(context_libraries)
if(NOT PARATAXIS_CONTEXT STREQUAL "ucontext")
    check_c_source_compiles("
        #if !defined(__x86_64__) || defined(__ILP32__)
        #error
        #endif
        int main(void) { return 0; }" PARATAXIS_IS_X86_64)
    check_c_source_compiles("
        #if !defined(__aarch64__) || defined(__ILP32__)
        #error
        #endif
        int main(void) { return 0; }" PARATAXIS_IS_AARCH64)
    if(PARATAXIS_IS_X86_64)
        set(context_source src/context/context_x86_64.S)
    elseif(PARATAXIS_IS_AARCH64)
        set(context_source src/context/context_aarch64.S)
    elseif(PARATAXIS_CONTEXT STREQUAL "asm")
        message(FATAL_ERROR "There is no assembly for this processor: "
            "use PARATAXIS_CONTEXT=ucontext")
    endif()
endif()
if(NOT context_source)
    # Some C libraries declare these and do not have them: link, do not look.
    set(ucontext_program "
        #include <ucontext.h>
        static ucontext_t from, to;
        static void entry(void) {}
        int main(void)
        {
            getcontext(&to);
            makecontext(&to, entry, 0);
            return swapcontext(&from, &to);
        }")
    check_c_source_compiles("${ucontext_program}" PARATAXIS_HAVE_UCONTEXT)
    if(NOT PARATAXIS_HAVE_UCONTEXT)
        cmake_push_check_state()
        list(APPEND CMAKE_REQUIRED_LIBRARIES ucontext)
        check_c_source_compiles("${ucontext_program}"
            PARATAXIS_HAVE_LIBUCONTEXT)
        cmake_pop_check_state()
        if(NOT PARATAXIS_HAVE_LIBUCONTEXT)
            message(FATAL_ERROR "Neither assembly for this processor nor "
                "makecontext() was found; libucontext has the latter")
        endif()
        set(context_libraries ucontext)
    endif()
    set(context_source src/context/context_ucontext.c)
endif()

# --- Waiting for descriptors -------------------------------------------------

set(poller_source)
if(NOT PARATAXIS_POLLER STREQUAL "poll")
    check_c_source_compiles("
        #include <sys/epoll.h>
        #include <sys/eventfd.h>
        int main(void)
        {
            return epoll_create1(EPOLL_CLOEXEC) + eventfd(0, EFD_CLOEXEC);
        }" PARATAXIS_HAVE_EPOLL)
    if(PARATAXIS_HAVE_EPOLL)
        set(poller_source src/poller/poller_epoll.c)
    elseif(PARATAXIS_POLLER STREQUAL "epoll")
        message(FATAL_ERROR "This system has no epoll: "
            "use PARATAXIS_POLLER=poll")
    endif()
endif()
if(NOT poller_source)
    set(poller_source src/poller/poller_poll.c)
endif()

# --- Flags -------------------------------------------------------------------

# A frame of ours must not be larger than a guard.
set(parataxis_warnings
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
    -Wmissing-prototypes -Wundef -Wformat=2 -Wcast-qual -Wwrite-strings
    -Wframe-larger-than=4096 -Walloca -Wvla)
if(PARATAXIS_WERROR)
    list(APPEND parataxis_warnings -Werror)
endif()

# A frame larger than the guard must touch the guard, not jump over it.
check_c_compiler_flag(-fstack-clash-protection
    PARATAXIS_HAVE_STACK_CLASH_PROTECTION)
set(parataxis_hardening)
if(PARATAXIS_HAVE_STACK_CLASH_PROTECTION)
    set(parataxis_hardening
        $<$<COMPILE_LANGUAGE:C>:-fstack-clash-protection>)
endif()
