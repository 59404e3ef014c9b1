# SPDX-License-Identifier: MIT
#
# run_and_compare.cmake - run a program, and compare what it prints.
#
#     cmake -DEXPECTED=<file> [-DFIGURES=ON] [-DERRORS=<file>]
#         -P run_and_compare.cmake -- <command>...
#
# It must end with 0, print what the file says, and nothing on stderr; with
# ERRORS it must end with 1, and that is what it says on stderr. With FIGURES
# what it measured, and where in memory something is, may be anything: "17.5 ns"
# is "# ns" in the file.
set(command)
set(past_separator OFF)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
    if(past_separator)
        list(APPEND command "${CMAKE_ARGV${i}}")
    elseif(CMAKE_ARGV${i} STREQUAL "--")
        set(past_separator ON)
    endif()
endforeach()

execute_process(
    COMMAND ${command}
    OUTPUT_VARIABLE output
    ERROR_VARIABLE errors
    RESULT_VARIABLE result)

set(expected_result 0)
set(expected_errors "")
if(ERRORS)
    set(expected_result 1)
    file(READ "${ERRORS}" expected_errors)
endif()
if(NOT result EQUAL expected_result)
    message(FATAL_ERROR "ended with ${result}:\n${output}${errors}")
endif()
if(FIGURES)
    foreach(printed output errors)
        string(REGEX REPLACE "-?[0-9]+(\\.[0-9]+)? (ns|B|MiB|s)([,\n])"
            "# \\2\\3" ${printed} "${${printed}}")
        string(REGEX REPLACE "0x[0-9a-f]+" "0x#" ${printed} "${${printed}}")
        string(REGEX REPLACE "spawned at [^\n]+" "spawned at #"
            ${printed} "${${printed}}")
    endforeach()
endif()
file(READ "${EXPECTED}" expected)
if(NOT output STREQUAL expected)
    message(FATAL_ERROR
        "expected:\n${expected}\nprinted:\n${output}${errors}")
endif()
if(NOT errors STREQUAL expected_errors)
    message(FATAL_ERROR
        "expected on stderr:\n${expected_errors}\nprinted:\n${errors}")
endif()
