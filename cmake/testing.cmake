# SPDX-License-Identifier: MIT
#
# testing.cmake - how tests are added, in tests/ and in examples/.

find_package(PkgConfig REQUIRED)
pkg_check_modules(cmocka IMPORTED_TARGET cmocka)
if(NOT cmocka_FOUND)
    message(FATAL_ERROR "The tests need cmocka (Debian: libcmocka-dev). "
        "To do without them: -DPARATAXIS_BUILD_TESTS=OFF")
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
include(CheckLanguage)
if(NOT CMAKE_CROSSCOMPILING) # or it might find the host's
    check_language(CXX)
endif()
if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
endif()

# Tests keep their assertions, whatever the build type says.
set(test_options -UNDEBUG)
set(test_warnings -Wall -Wextra -Wshadow)
if(PARATAXIS_WERROR)
    list(APPEND test_warnings -Werror)
endif()

set(PARATAXIS_TEST_LAUNCHER "" CACHE STRING
    "A command that each compiled test is run by, such as valgrind")
set(PARATAXIS_TEST_TIMEOUT_SCALE 1 CACHE STRING
    "How many times slower than usual the tests may run")
set(PARATAXIS_TEST_SEEDS "" CACHE STRING
    "Seeds: each test runs once more for each, its run queue shuffled by it")
set(PARATAXIS_TEST_CALLS 1000000 CACHE STRING
    "How many random calls each of the models' suites makes")
option(PARATAXIS_TEST_EXHAUSTIVE
    "Play every small program under every schedule, and plant the mutants" OFF)
option(PARATAXIS_TEST_FUZZER
    "Build the programs of the models as a target of libFuzzer (clang)" OFF)
set(PARATAXIS_TEST_FUZZ_SECONDS 60 CACHE STRING "How long the fuzzer runs")
mark_as_advanced(PARATAXIS_TEST_LAUNCHER PARATAXIS_TEST_TIMEOUT_SCALE
    PARATAXIS_TEST_SEEDS PARATAXIS_TEST_CALLS PARATAXIS_TEST_EXHAUSTIVE
    PARATAXIS_TEST_FUZZER PARATAXIS_TEST_FUZZ_SECONDS)

set(test_emulator)
if(CMAKE_CROSSCOMPILING)
    set(test_emulator ${CMAKE_CROSSCOMPILING_EMULATOR})
endif()
set(test_launcher ${test_emulator} ${PARATAXIS_TEST_LAUNCHER})

# px_add_test(<name> SOURCES <file>... [LABELS <label>...] [TIMEOUT <seconds>]
#             [LIBRARIES <library>...] [INTERNAL])
#
# Build the files with px_test.c into a program and run it as a test. INTERNAL
# links it with a static build of the library whose inside it may look at.
function(px_add_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg
        "INTERNAL" "TIMEOUT" "SOURCES;LABELS;LIBRARIES")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "px_add_test: ${arg_UNPARSED_ARGUMENTS}?")
    endif()
    foreach(source IN LISTS arg_SOURCES)
        if(source MATCHES "\\.cpp$" AND NOT CMAKE_CXX_COMPILER)
            message(STATUS "tests: no C++ compiler, ${name} is left out")
            set_property(GLOBAL APPEND PROPERTY px_test_sources ${arg_SOURCES})
            return()
        endif()
    endforeach()
    set_property(GLOBAL APPEND PROPERTY px_test_sources ${arg_SOURCES})
    add_executable(${name} ${arg_SOURCES})
    set_target_properties(${name} PROPERTIES CXX_STANDARD 11)
    if(arg_INTERNAL)
        set(library parataxis_testing)
    else()
        set(library parataxis::parataxis)
    endif()
    target_link_libraries(${name} PRIVATE
        px_test ${library} ${arg_LIBRARIES})
    target_compile_options(${name} PRIVATE ${test_warnings})
    add_test(NAME ${name}
        COMMAND ${test_launcher} $<TARGET_FILE:${name}>)
    px_set_test_properties(${name} LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT})

    if("nightly" IN_LIST arg_LABELS OR "release" IN_LIST arg_LABELS)
        return()
    endif()
    set_property(GLOBAL APPEND PROPERTY px_unit_tests ${name})
    # Faults run each workload a thousand times as it is.
    if("order" IN_LIST arg_LABELS OR "realtime" IN_LIST arg_LABELS
            OR "faults" IN_LIST arg_LABELS)
        return()
    endif()
    foreach(seed IN LISTS PARATAXIS_TEST_SEEDS)
        add_test(NAME ${name}.seed${seed}
            COMMAND ${test_launcher} $<TARGET_FILE:${name}>)
        px_set_test_properties(${name}.seed${seed}
            LABELS shuffle ${arg_LABELS} TIMEOUT ${arg_TIMEOUT})
        set_property(TEST ${name}.seed${seed} PROPERTY
            ENVIRONMENT PX_TEST_SEED=${seed})
    endforeach()
endfunction()

# px_set_test_properties(<test> [LABELS <label>...] [TIMEOUT <seconds>])
#
# What every test has: labels, and a time after which it counts as hung.
function(px_set_test_properties name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LABELS")
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 10)
    endif()
    math(EXPR timeout "${arg_TIMEOUT} * ${PARATAXIS_TEST_TIMEOUT_SCALE}")
    set_tests_properties(${name} PROPERTIES
        LABELS "${arg_LABELS}"
        SKIP_RETURN_CODE 77
        TIMEOUT ${timeout})
    if("realtime" IN_LIST arg_LABELS)
        set_property(TEST ${name} PROPERTY RUN_SERIAL ON)
    endif()
endfunction()

# px_add_script_test(<name> COMMAND <command>... [LABELS ...] [TIMEOUT ...])
#
# A test that is not compiled.
function(px_add_script_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "COMMAND;LABELS")
    add_test(NAME ${name} COMMAND ${arg_COMMAND})
    px_set_test_properties(${name} LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT})
endfunction()

# px_add_example_test(<target> <file> [FIGURES] [ERRORS <file>]
#     [ARGUMENTS <argument>...])
#
# Run an example; it prints what the file says. FIGURES: but for what it
# measured, which stands there as "# ns", "# B" or "# MiB", and for addresses.
# ERRORS: it ends with 1, and says on stderr what that file says.
function(px_add_example_test target expected)
    cmake_parse_arguments(PARSE_ARGV 2 arg "FIGURES" "ERRORS" "ARGUMENTS")
    px_add_script_test(${target} LABELS example
        COMMAND "${CMAKE_COMMAND}" "-DEXPECTED=${expected}"
            "-DFIGURES=${arg_FIGURES}" "-DERRORS=${arg_ERRORS}"
            -P "${PROJECT_SOURCE_DIR}/cmake/run_and_compare.cmake"
            -- ${test_launcher} $<TARGET_FILE:${target}> ${arg_ARGUMENTS})
endfunction()
