# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# lib.sh - what demo, test and .ci/run share: installing what is missing, and
# running one preset. It is sourced, by scripts that have said `set -eu`.
#
# Requirements are named by what they do, not by package: a tool that is there
# already is used, wherever it came from. Only what is missing is installed,
# from Debian's packages, and only by root or where sudo asks for no password.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
logs=$top/build/log
cores=$(nproc 2>/dev/null || echo 2)
missing=() # packages that would meet the requirements that are not met
export LC_ALL=C

say() {
    printf '%s\n' "$*"
}

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# check_regex REGEX: grep takes it for an extended one, or we end.
check_regex() {
    local status=0

    grep -qE -- "$1" <<<. 2>/dev/null || status=$?
    if [ "$status" = 2 ]; then fail "'$1' is no regular expression."; fi
}

# is_count WORD: a whole number from 1 on.
is_count() {
    [[ $1 =~ ^[1-9][0-9]{0,8}$ ]]
}

# show_end FILE [LINES]: the end of a log, after something went wrong.
show_end() {
    printf -- '--- the end of %s ---\n' "${1#"$top"/}" >&2
    tail -n "${2:-40}" "$1" >&2
    printf -- '---\n' >&2
}

# ---- requirements ---------------------------------------------------------

# Each need_NAME adds to `missing` the packages that would meet it.

lacks_command() {
    ! command -v "$1" >/dev/null 2>&1
}

# need_c [COMPILER]: one that finds the C library's headers.
need_c() {
    local out

    out=$(mktemp)
    if ! printf '#include <stdio.h>\nint main(void) { return 0; }\n' |
        "${1:-${CC:-cc}}" -x c - -o "$out" 2>/dev/null; then
        missing+=(gcc libc6-dev)
    fi
    rm -f "$out"
}

need_cxx() { # [COMPILER]
    local out

    out=$(mktemp)
    if ! printf '#include <new>\nint main() { return 0; }\n' |
        "${1:-${CXX:-c++}}" -x c++ - -o "$out" 2>/dev/null; then
        missing+=(g++)
    fi
    rm -f "$out"
}

# 3.25 is the first that knows workflow presets.
need_cmake() {
    local version

    version=$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*//p') || true
    if [ "$(printf '%s\n' 3.25 "${version:-0}" | sort -V | head -n 1)" != 3.25 ]
    then
        missing+=(cmake)
    fi
}

need_ninja() {
    if lacks_command ninja; then missing+=(ninja-build); fi
}

# What CMake is to write for: either will do.
need_build_tool() {
    if lacks_command ninja && lacks_command make; then
        missing+=(ninja-build)
    fi
}

need_pkg_config() {
    if lacks_command pkg-config; then missing+=(pkg-config); fi
}

need_cmocka() {
    if ! pkg-config --exists cmocka 2>/dev/null; then
        missing+=(libcmocka-dev)
    fi
}

need_python() {
    if lacks_command python3; then missing+=(python3); fi
}

need_git() {
    if lacks_command git; then missing+=(git); fi
}

# need_package NAME: where only the package itself will do (other than on
# Debian it is taken to be there).
need_package() {
    if lacks_command dpkg-query; then return; fi
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" \
        != installed ]; then
        missing+=("$1")
    fi
}

# ---- installing -----------------------------------------------------------

# as_root COMMAND ...: by root, or by sudo where it asks for nothing.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

may_install() {
    if lacks_command apt-get; then return 1; fi
    as_root true 2>/dev/null
}

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 \
        "$@" </dev/null
}

# install PACKAGE ...: from Debian's packages, nothing recommended with them.
# Lists that cannot be brought up to date are no reason to stop: what is
# wanted may be in those that are there.
install() {
    local log=$logs/install.log try

    mkdir -p "$logs"
    say "Installing from Debian's packages: $*"
    for try in 1 2 3; do
        if { apt update || true; apt install --no-install-recommends "$@"; } \
            >"$log" 2>&1; then
            return 0
        fi
        sleep "$((try * 3))"
    done
    show_end "$log"
    fail "The packages could not be installed."
}

unmet() {
    missing=()
    local requirement

    for requirement; do
        # shellcheck disable=SC2086 # a requirement may have an argument
        need_${requirement}
    done
}

# ensure REQUIREMENT ...: see that all are met, or say what is missing and end.
ensure() {
    unmet "$@"
    if [ "${#missing[@]}" = 0 ]; then return; fi
    if ! may_install; then
        say "Missing here, by the names of Debian's packages: ${missing[*]}" >&2
        say "Install them and start again. On Debian 12 or newer, as root:" >&2
        fail "    apt-get install --no-install-recommends ${missing[*]}"
    fi
    install "${missing[@]}"
    unmet "$@"
    if [ "${#missing[@]}" != 0 ]; then
        fail "Installed, but still not good enough: ${missing[*]}" \
            "(Debian 12 or newer has what is needed, CMake 3.25 for one)."
    fi
}

# ---- presets --------------------------------------------------------------

# A run of a preset leaves a line "name passed failed skipped" in $results.
# Whoever started us may have set it already, to add up more than one run.
results=${PX_TEST_RESULTS:-$logs/results}

begin_results() {
    mkdir -p "$logs"
    rm -f "$logs/dev.xml" # what the others are compared with
    rm -f "$results.failures"
    : >"$results"
}

record() {
    printf '%s %s %s %s\n' "$1" "$2" "$3" "$4" >>"$results"
}

# check NAME COMMAND ...: a check that counts as one test.
check() {
    local name=$1

    shift
    if "$@"; then
        record "$name" 1 0 0
    else
        say "$name: FAILED"
        record "$name" 0 1 0
    fi
}

# show_errors FILE: what ninja says of the steps that failed, or else the end.
show_errors() {
    local errors

    errors=$(awk '/^FAILED: / { shown = 1 }
        /^\[[0-9]+\/[0-9]+\]/ { shown = 0 }
        shown' "$1" | head -n 100)
    if [ -n "$errors" ]; then
        printf '%s\n' "$errors" >&2
    else
        show_end "$1"
    fi
}

# build_preset PRESET: configure and build as much of it as can be. 0, or 1
# with the errors shown and the failure recorded.
build_preset() {
    local preset=$1 log=$logs/$1-build.log begun=$SECONDS

    mkdir -p "$logs"
    if { cmake --preset "$preset" &&
        cmake --build --preset "$preset" --parallel "$cores" -- -k 0; } \
        >"$log" 2>&1 </dev/null; then
        say "$preset: built ($((SECONDS - begun)) s)"
        return 0
    fi
    show_errors "$log"
    say "$preset: FAILED to build"
    record "$preset-build" 0 1 0
    return 1
}

# The sanitizers of Debian 12's compilers lose their way where the kernel
# spreads mappings over more than 28 bits; there the tests run without that.
steady() {
    local bits

    bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null) || bits=28
    if [ "$bits" -gt 28 ] && setarch -R true 2>/dev/null; then
        setarch -R "$@"
    else
        "$@"
    fi
}

# test_preset PRESET [BUILT]: run the tests of a test preset, built by the
# preset of the same name or BUILT; say how many passed, and which were skipped
# or left out and why; record it. Each program runs as many tests as under dev.
# 0 if none failed.
test_preset() {
    local preset=$1 built=${2:-$1} log=$logs/$1-test.log
    local begun=$SECONDS reference=()

    mkdir -p "$logs"
    rm -f "$logs/$preset.xml"
    steady ctest --preset "$preset" --parallel "$cores" \
        --output-junit "$logs/$preset.xml" \
        --test-output-size-passed 10000000 \
        --test-output-size-failed 10000000 \
        >"$log" 2>&1 </dev/null || true
    if [ ! -s "$logs/$preset.xml" ]; then
        show_end "$log"
        say "$preset: FAILED to run its tests"
        record "$preset" 0 1 0
        return 1
    fi
    if [ "$preset" != dev ] && [ -s "$logs/dev.xml" ]; then
        reference=("$logs/dev.xml")
    fi
    python3 "$top/scripts/report.py" "$preset" "$logs/$preset.xml" \
        "$top/build/$built" "$results" "$((SECONDS - begun))" \
        "${reference[@]}"
}

# run_preset PRESET: build it and run its tests, those that were built if not
# all were. 0 if all of it worked.
run_preset() {
    local status=0

    build_preset "$1" || status=1
    if [ -f "$top/build/$1/CTestTestfile.cmake" ]; then
        test_preset "$1" || status=1
    fi
    return "$status"
}

# closing_line: the sum of all that was recorded; 0 if nothing failed. What did
# is told once more above it: a long log is read from its end.
closing_line() {
    if [ -s "$results.failures" ]; then
        say "What failed, once more:"
        cat "$results.failures"
    fi
    awk '{ passed += $2; failed += $3; skipped += $4 }
        END {
            printf "%d passed, %d failed", passed, failed
            if (skipped) printf ", %d skipped", skipped
            printf "\n"
            exit failed > 0 || passed == 0
        }' "$results"
}
