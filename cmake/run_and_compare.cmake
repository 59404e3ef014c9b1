# SPDX-License-Identifier: MIT
#
# run_and_compare.cmake - run a program, and compare what it prints.
#
#     cmake -DEXPECTED=<file> [-DFIGURES=ON] -P run_and_compare.cmake
#         -- <command>...
#
# It must end with 0, print what the file says, and nothing on stderr. With
# FIGURES what it measured may be anything: "17.5 ns" is "# ns" in the file.
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
if(NOT result EQUAL 0)
    message(FATAL_ERROR "ended with ${result}:\n${output}${errors}")
endif()
if(FIGURES)
    string(REGEX REPLACE "-?[0-9]+(\\.[0-9]+)? (ns|B|MiB)" "# \\2"
        output "${output}")
endif()
file(READ "${EXPECTED}" expected)
if(NOT output STREQUAL expected)
    message(FATAL_ERROR
        "expected:\n${expected}\nprinted:\n${output}${errors}")
endif()
if(NOT errors STREQUAL "")
    message(FATAL_ERROR "on stderr:\n${errors}")
endif()
