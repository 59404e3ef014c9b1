#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Install libparataxis, move it, and build users' programs with it.

    run.py CASE --source DIR --work DIR [--cmake CMAKE] [--cc CC] [--cxx CXX]

`prepare` comes first: it installs a shared and a static build into one prefix,
and moves the prefix. The other cases use that, each in a folder of its own.
Exit code 77: skipped, and the output says why.
"""
import argparse
import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def skip(reason):
    print("skipped: " + reason)
    sys.exit(77)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip(f"{program} is not installed")


class Case:
    """The tools of one case, and the steps that several share."""

    def __init__(self, args):
        self.args = args
        self.source = args.source.resolve()
        self.work = args.work.resolve()
        self.prefix = self.work / "moved" / "prefix"
        name = args.case + "-" + re.sub(r"\W", "_", args.cc)
        self.scratch = self.work / name
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        self.environment = {
            name: value for name, value in os.environ.items()
            if name not in ("CFLAGS", "CXXFLAGS", "LDFLAGS", "DESTDIR")
            and not name.startswith("CMAKE_")
        }

    def run(self, *command, fails=False, **extra):
        environment = dict(self.environment, **extra)
        result = subprocess.run([str(c) for c in command], env=environment,
                                stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True,
                                cwd=self.scratch, check=False)
        if (result.returncode != 0) != fails:
            print("$ " + " ".join(str(c) for c in command))
            print(result.stdout)
            sys.exit(f"exit code {result.returncode}")
        return result.stdout

    def configure(self, source, build, *options, **extra):
        return self.run(self.args.cmake, "-G", "Ninja", "-S", source,
                        "-B", build,
                        f"-DCMAKE_C_COMPILER={self.args.cc}",
                        f"-DCMAKE_CXX_COMPILER={self.args.cxx}",
                        "-DCMAKE_BUILD_TYPE=Release", *options, **extra)

    def install(self, flavor, prefix, *options, destdir=None):
        """Build one flavor of the library and install it."""
        build = self.scratch / f"build-{flavor}"
        extra = {"DESTDIR": str(destdir)} if destdir else {}
        self.configure(self.source, build,
                       f"-DBUILD_SHARED_LIBS={flavor == 'shared'}",
                       f"-DCMAKE_INSTALL_PREFIX={prefix}",
                       "-DPARATAXIS_BUILD_TESTS=OFF",
                       "-DPARATAXIS_BUILD_EXAMPLES=OFF", *options)
        self.run(self.args.cmake, "--build", build)
        self.run(self.args.cmake, "--install", build, **extra)
        return build

    def consume(self, *options, fails=False):
        """Build the user's project and run it. Returns the program."""
        build = self.scratch / "consumer"
        shutil.rmtree(build, ignore_errors=True)
        if fails:
            return self.run(self.args.cmake, "-G", "Ninja", "-S", HERE,
                            "-B", build, *options, fails=True)
        self.configure(HERE, build, *options)
        self.run(self.args.cmake, "--build", build)
        print(self.run(build / "consumer"), end="")
        return build / "consumer"

    def outside(self):
        """A folder outside the source tree, gone when we are."""
        path = Path(tempfile.mkdtemp(prefix="px-consumer-"))
        atexit.register(shutil.rmtree, path, ignore_errors=True)
        return path

    def pkg_config(self, directory, *options):
        return self.run(
            "pkg-config", *options, "parataxis",
            PKG_CONFIG_PATH=str(directory / "pkgconfig")).split()

    def needs_shared_library(self, program):
        return "libparataxis.so" in self.run("readelf", "-d", program)

    def libdir(self, prefix=None):
        return next((prefix or self.prefix).rglob("parataxis.pc")).parent.parent


def check(holds, sentence):
    if not holds:
        sys.exit("does not hold: " + sentence)


def strings_of(prefix):
    for path in sorted(prefix.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path, path.read_bytes()


@case
def prepare(t):
    first = t.scratch / "first"
    for flavor in ("shared", "static"):
        t.install(flavor, first)
    shutil.rmtree(t.prefix.parent, ignore_errors=True)
    t.prefix.parent.mkdir(parents=True)
    first.rename(t.prefix)
    # Nothing points back to where it was built or first installed.
    for path, content in strings_of(t.prefix):
        for place in (first, t.scratch, t.source):
            check(str(place).encode() not in content,
                  f"{path.relative_to(t.prefix)} does not name {place}")
    for build in t.scratch.glob("build-*"):
        shutil.rmtree(build)
    headers = {p.name for p in (t.source / "include/parataxis").iterdir()}
    installed = {p.name for p in (t.prefix / "include/parataxis").iterdir()}
    check(headers == installed, "exactly the public headers are installed")
    for path in sorted(t.prefix.rglob("*")):
        if not path.is_dir():
            print(path.relative_to(t.prefix))


@case
def find_package(t):
    where = f"-DCMAKE_PREFIX_PATH={t.prefix}"
    for component, options in (
            ("shared", ["-DCOMPONENT=shared"]),
            ("static", ["-DCOMPONENT=static"]),
            ("shared", []),
            ("static", ["-DBUILD_SHARED_LIBS=OFF"])):
        program = t.consume("-DHOW=find", "-DSOURCE=main.c", where, *options)
        check(t.needs_shared_library(program) == (component == "shared"),
              f"{options} links the {component} library")


@case
def find_package_refuses(t):
    where = f"-DCMAKE_PREFIX_PATH={t.prefix}"
    common = ["-DHOW=find", "-DSOURCE=main.c",
              f"-DCMAKE_C_COMPILER={t.args.cc}"]
    says = t.consume(*common, where, "-DCOMPONENT=dynamic", fails=True)
    check("no component 'dynamic'" in says, "it names an unknown component")
    says = t.consume(*common, where, "-DCOMPONENT=shared;static", fails=True)
    check("Ask for one" in says, "both flavors at once are refused")
    only = t.scratch / "only-shared"
    shutil.copytree(t.prefix, only, symlinks=True)
    next(only.rglob("parataxis-static-targets.cmake")).unlink()
    where = f"-DCMAKE_PREFIX_PATH={only}"
    says = t.consume(*common, where, "-DCOMPONENT=static", fails=True)
    check("No static libparataxis" in says, "it says which flavor is missing")
    t.consume("-DHOW=find", "-DSOURCE=main.c", where,
              "-DBUILD_SHARED_LIBS=OFF")
    version = next(only.rglob("parataxis-config-version.cmake"))
    text = version.read_text()
    check("0.1" in text, "the version file has a version")
    for asked, compatible in (("0.1", True), ("0.1.0", True), ("0.2", False),
                              ("0.0", False), ("1.0", False)):
        script = t.scratch / "version.cmake"
        major, minor = asked.split(".")[:2]
        script.write_text(
            f"set(PACKAGE_FIND_VERSION {asked})\n"
            f"set(PACKAGE_FIND_VERSION_MAJOR {major})\n"
            f"set(PACKAGE_FIND_VERSION_MINOR {minor})\n"
            f"set(CMAKE_SIZEOF_VOID_P 8)\n"
            f'include("{version}")\n'
            "if(PACKAGE_VERSION_COMPATIBLE)\nmessage(STATUS yes)\nendif()\n")
        says = t.run(t.args.cmake, "-P", script)
        check(("yes" in says) == compatible,
              f"a request for {asked} is answered {compatible}")


@case
def cxx(t):
    need(t.args.cxx)
    for component in ("shared", "static"):
        t.consume("-DHOW=find", "-DSOURCE=main.cpp",
                  f"-DCOMPONENT={component}",
                  f"-DCMAKE_PREFIX_PATH={t.prefix}")


@case
def pkg_config(t):
    need("pkg-config")
    libdir = t.libdir()
    program = t.scratch / "program"
    flags = t.pkg_config(libdir, "--cflags", "--libs")
    check("-DPX_STATIC" not in flags, "the shared library needs no PX_STATIC")
    t.run(t.args.cc, HERE / "main.c", "-o", program, *flags)
    check(t.needs_shared_library(program), "the shared library is linked")
    print(t.run(program, LD_LIBRARY_PATH=str(libdir)), end="")

    flags = t.pkg_config(libdir, "--static", "--cflags", "--libs")
    check("-DPX_STATIC" in flags, "--static says PX_STATIC")
    check("-pthread" in flags, "--static says what the library needs")
    t.run(t.args.cc, "-static", HERE / "main.c", "-o", program, *flags)
    print(t.run(program), end="")


@case
def subdirectory(t):
    for how, shared in (("subdirectory", False), ("fetch", True)):
        options = ["-DBUILD_SHARED_LIBS=ON",
                   "-DGIVEN=BUILD_SHARED_LIBS"] if shared else []
        program = t.consume(f"-DHOW={how}", "-DSOURCE=main.c",
                            f"-DPARATAXIS_DIRECTORY={t.source}", *options)
        check(t.needs_shared_library(program) == shared,
              "BUILD_SHARED_LIBS picks the type")
        says = t.run(t.args.cmake, "--install", program.parent, "--prefix",
                     t.scratch / "nothing")
        check("parataxis" not in says.replace(str(t.scratch), ""),
              "a user's install does not install the library")


@case
def plugin(t):
    libdir = t.libdir()
    flags = t.pkg_config(libdir, "--static", "--cflags")
    shared_object = t.scratch / "plugin.so"
    loader = t.scratch / "load_plugin"
    t.run(t.args.cc, "-O2", "-fPIC", "-shared", "-Wl,-z,text",
          "-Wl,--fatal-warnings", "-Wl,-z,defs", HERE / "plugin.c",
          "-o", shared_object, *flags, libdir / "libparataxis.a", "-pthread")
    t.run(t.args.cc, HERE / "load_plugin.c", "-o", loader, "-ldl")
    t.run(loader, shared_object)


@case
def executable_stack(t):
    """No linker warns, and the program's stack is not executable."""
    program = t.scratch / "program"
    for library in ("libparataxis.a", "libparataxis.so"):
        t.run(t.args.cc, "-Wl,--fatal-warnings", f"-I{t.prefix}/include",
              HERE / "main.c", "-o", program, t.libdir() / library, "-pthread")
        segments = t.run("readelf", "-lW", program)
        check(re.search(r"GNU_STACK.*\sRW\s", segments),
              f"a program with {library} has a plain stack")


@case
def link_time_optimization(t):
    """The static library built with -flto, in a program built with it."""
    linker = []
    if "clang" in t.args.cc:
        need("ld.lld")
        linker = ["-fuse-ld=lld"]
    tools = []
    if "clang" in t.args.cc:
        for name in ("AR", "RANLIB"):
            tool = t.run(t.args.cc, "-print-prog-name=llvm-"
                         + name.lower()).strip()
            need(tool)
            tools.append(f"-DCMAKE_{name}={shutil.which(tool)}")
    flags = ["-O2", "-flto"]
    t.install("static", t.scratch / "prefix",
              "-DCMAKE_C_FLAGS=" + " ".join(flags), *tools)
    libdir = t.libdir(t.scratch / "prefix")
    program = t.scratch / "program"
    t.run(t.args.cc, *flags, *linker, "-fno-plt", HERE / "main.c",
          "-o", program, *t.pkg_config(libdir, "--static", "--cflags"),
          libdir / "libparataxis.a", "-pthread")
    print(t.run(program), end="")


@case
def directories(t):
    """Every way to lay out a prefix: what pkg-config and CMake then say."""
    need("pkg-config")
    here = t.scratch
    absolute = t.outside()
    layouts = {
        "lib": ["-DCMAKE_INSTALL_LIBDIR=lib"],
        "lib64": ["-DCMAKE_INSTALL_LIBDIR=lib64"],
        "multiarch": ["-DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu"],
        "absolute": [f"-DCMAKE_INSTALL_LIBDIR={absolute}/x/lib",
                     f"-DCMAKE_INSTALL_INCLUDEDIR={absolute}/y/include"],
        "mixed": [f"-DCMAKE_INSTALL_LIBDIR={here}/mixed/x/lib"],
    }
    for name, options in layouts.items():
        prefix = here / "prefix" / name
        build = t.install("shared", prefix, *options)
        first = t.libdir() / "libparataxis.so"
        again = build / "libparataxis.so"
        check(first.read_bytes() == again.read_bytes(),
              "built elsewhere, the library is the same, byte by byte")
        if name == "absolute":
            libdir = absolute / "x/lib"
        elif name == "mixed":
            libdir = here / "mixed/x/lib"
        else:
            libdir = t.libdir(prefix)
        pc = (libdir / "pkgconfig/parataxis.pc").read_text()
        check("//" not in pc, f"{name}: no // in parataxis.pc")
        check("build-shared" not in pc, f"{name}: no build path")
        flags = t.pkg_config(libdir, "--cflags", "--libs")
        for flag in flags:
            if flag[:2] in ("-L", "-I"):
                check(Path(flag[2:]).is_dir(), f"{name}: {flag} exists")
        if name == "absolute":
            check(f"-L{libdir}" in flags, "absolute: -L verbatim")
            check(f"-I{absolute}/y/include" in flags, "absolute: -I verbatim")
        program = here / f"program-{name}"
        t.run(t.args.cc, HERE / "main.c", "-o", program, *flags)
        t.run(program, LD_LIBRARY_PATH=str(libdir))
        t.consume("-DHOW=find", "-DSOURCE=main.c",
                  f"-DCMAKE_PREFIX_PATH={libdir / 'cmake/parataxis'}")
        if name in ("lib", "lib64", "multiarch"):
            moved = here / "moved" / name
            moved.parent.mkdir(exist_ok=True)
            prefix.rename(moved)
            libdir = t.libdir(moved)
            flags = t.pkg_config(libdir, "--cflags", "--libs")
            t.run(t.args.cc, HERE / "main.c", "-o", program, *flags)
            t.run(program, LD_LIBRARY_PATH=str(libdir))
            # Not every system's CMake looks into lib64 by itself.
            t.consume("-DHOW=find", "-DSOURCE=main.c",
                      f"-DCMAKE_PREFIX_PATH={moved}"
                      if name != "lib64" else
                      f"-Dparataxis_DIR={libdir / 'cmake/parataxis'}")
        print(f"{name}: " + " ".join(flags).replace(str(here), "..."))


@case
def destdir(t):
    """DESTDIR stages, and leaves no mark on what is staged."""
    stage = t.scratch / "stage"
    for name, options in {
            "relative": [],
            "absolute": ["-DCMAKE_INSTALL_LIBDIR=/opt/px/lib",
                         "-DCMAKE_INSTALL_INCLUDEDIR=/opt/px/include"],
    }.items():
        t.install("static", "/opt/px", *options, destdir=stage / name)
        root = stage / name / "opt/px"
        check((root / "include/parataxis/parataxis.h").exists(),
              f"{name}: staged below DESTDIR")
        for path, content in strings_of(root):
            check(str(stage).encode() not in content,
                  f"{name}: {path.name} does not name DESTDIR")
        pc = next(root.rglob("parataxis.pc")).read_text()
        check(("/opt/px/lib" in pc) == (name == "absolute"),
              f"{name}: only absolute directories are written down")
        check("//" not in pc, f"{name}: no //")


@case
def cross(t):
    """Configures for another processor without being able to run anything."""
    need("aarch64-linux-gnu-gcc")
    build = t.scratch / "build"
    toolchain = t.scratch / "toolchain.cmake"
    toolchain.write_text("set(CMAKE_SYSTEM_NAME Linux)\n"
                         "set(CMAKE_SYSTEM_PROCESSOR aarch64)\n"
                         "set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)\n")
    t.run(t.args.cmake, "-G", "Ninja", "-S", t.source, "-B", build,
          f"-DCMAKE_TOOLCHAIN_FILE={toolchain}",
          "-DPARATAXIS_BUILD_TESTS=OFF", "-DPARATAXIS_BUILD_EXAMPLES=OFF")
    ninja = (build / "build.ninja").read_text()
    check("context_aarch64.S" in ninja and "context_x86_64.S" not in ninja,
          "the processor is the compiler's, not the host's")


@case
def debian_packages(t):
    """The packages hold what they should, and a program builds with them."""
    need("dpkg-deb", "dpkg-shlibdeps", "gzip", "pkg-config")
    build = t.scratch / "build"
    t.configure(t.source, build, "-DBUILD_SHARED_LIBS=ON",
                "-DPARATAXIS_PACKAGE=ON", "-DCMAKE_INSTALL_PREFIX=/usr",
                "-DPARATAXIS_BUILD_TESTS=OFF", "-DPARATAXIS_BUILD_EXAMPLES=OFF")
    t.run(t.args.cmake, "--build", build)
    t.run("cpack", "-G", "DEB", "--config", build / "CPackConfig.cmake",
          "-B", t.scratch)
    packages = {p.name.split("_")[0]: p for p in t.scratch.glob("*.deb")}
    check(set(packages) == {"libparataxis0.1", "libparataxis-dev"},
          f"two packages: {sorted(packages)}")

    def field(package, name):
        return t.run("dpkg-deb", "-f", packages[package], name).strip()

    check("libc6 (>= " in field("libparataxis0.1", "Depends"),
          "the library depends on the C library it was linked with")
    check(field("libparataxis-dev", "Depends").startswith(
        "libparataxis0.1 (= 0.1."), "-dev depends on this very library")
    check(field("libparataxis0.1", "Section") == "libs", "section libs")
    check(field("libparataxis-dev", "Section") == "libdevel",
          "section libdevel")
    root = t.scratch / "root"
    for name, package in packages.items():
        t.run("dpkg-deb", "-x", package, root)
        t.run("dpkg-deb", "-e", package, t.scratch / f"control-{name}")
        check((root / "usr/share/doc" / name / "copyright").exists(),
              f"{name} has its copyright file")
    control = {p.name for p in (t.scratch / "control-libparataxis0.1").iterdir()}
    check(control == {"control", "md5sums", "shlibs", "triggers"},
          f"no maintainer scripts: {sorted(control)}")
    has = {p.name for p in t.libdir(root).iterdir() if "lib" in p.name}
    check({"libparataxis.a", "libparataxis.so", "libparataxis.so.0.1"} <= has,
          "both flavors are there")
    program = t.scratch / "program"
    t.run(t.args.cc, HERE / "main.c", "-o", program,
          *t.pkg_config(t.libdir(root), "--cflags", "--libs"))
    print(t.run(program, LD_LIBRARY_PATH=str(t.libdir(root))), end="")
    for component in ("shared", "static"):
        t.consume("-DHOW=find", "-DSOURCE=main.c", f"-DCOMPONENT={component}",
                  f"-DCMAKE_PREFIX_PATH={root}/usr")
    if shutil.which("lintian"):
        print(t.run("lintian", "--fail-on", "error", "--allow-root",
                    *packages.values()))


@case
def other_c_library(t):
    """The library works with musl, which has less than glibc."""
    need("musl-gcc")
    build = t.scratch / "build"
    options = ["-G", "Ninja", "-S", t.source, "-B", build,
               "-DCMAKE_C_COMPILER=musl-gcc", "-DBUILD_SHARED_LIBS=OFF",
               "-DPARATAXIS_WERROR=ON", "-DPARATAXIS_BUILD_TESTS=OFF",
               "-DPARATAXIS_BUILD_EXAMPLES=OFF"]
    t.run(t.args.cmake, *options)
    t.run(t.args.cmake, "--build", build)
    library, program = build / "libparataxis.a", t.scratch / "program"
    for name in ("makecontext", "swapcontext", "getcontext"):
        check(not re.search(rf" U {name}$", t.run("nm", library), re.M),
              f"the library does not call {name}()")
    # The compiler's own library may be made for glibc, and ask that where the
    # tables for unwinding are. Nothing is thrown here.
    glibc = t.scratch / "glibc.c"
    glibc.write_text("int _dl_find_object(void *pc, void *result);\n"
                     "int _dl_find_object(void *pc, void *result)\n"
                     "{\n    return pc == result ? -1 : -2;\n}\n")
    t.run("musl-gcc", "-static", "-DPX_STATIC", f"-I{t.source}/include",
          HERE / "main.c", glibc, "-o", program, library, "-pthread")
    print(t.run(program), end="")
    says = t.run(t.args.cmake, *options, "-DPARATAXIS_CONTEXT=ucontext",
                 fails=True)
    check("makecontext() was found" in says,
          "it is found out by linking that musl only declares makecontext()")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    args = parser.parse_args()

    need(args.cc, "ninja")
    CASES[args.case](Case(args))


if __name__ == "__main__":
    main()
