# SPDX-License-Identifier: MIT
"""Fibers of libparataxis, in gdb: of a live process and of a core alike.

    (gdb) source tools/gdb/parataxis.py
    (gdb) px-fibers              every fiber of the selected thread's run
    (gdb) px-backtrace 7         the stack of fiber 7, parked or not
    (gdb) px-backtrace all       of all of them
    (gdb) px-fiber 7             go to it: up, down, info locals work there
    (gdb) px-fiber               back to what runs

The library must be there with debug information (-g); programs that use it
need none for the list. Nothing is called in the process and nothing in it is
changed: a parked fiber's registers are read from where the switch left them,
and given to gdb by an unwinder that says they are the caller of the innermost
frame. So frame 0 stays the running one, and frame 1 is where the fiber parked.
"""
import time

import gdb
from gdb.unwinder import Unwinder, register_unwinder

# Where the switch leaves the registers (context_x86_64.S, context_aarch64.S):
# offsets from the saved stack pointer, and where the stack was before it.
X86_64 = (
    {"r15": 8, "r14": 16, "r13": 24, "r12": 32, "rbx": 40, "rbp": 48,
     "rip": 56}, 64)
AARCH64 = (
    {"x19": 0, "x20": 8, "x21": 16, "x22": 24, "x23": 32, "x24": 40,
     "x25": 48, "x26": 56, "x27": 64, "x28": 72, "x29": 80, "pc": 88}, 176)
# The portable switch keeps a ucontext_t: the index in gregs of each register.
UCONTEXT_X86_64 = {
    "r12": 4, "r13": 5, "r14": 6, "r15": 7, "rbp": 10, "rbx": 11,
    "rsp": 15, "rip": 16}


def field_word(address):
    """The 64-bit word at an address."""
    pointer = gdb.lookup_type("unsigned long").pointer()
    return int(gdb.Value(address).cast(pointer).dereference())


def symbol_address(name):
    try:
        return int(gdb.parse_and_eval(f"(unsigned long)&{name}"))
    except gdb.error:
        return None


def saved_registers(sp):
    """The registers of a context that is not running, by name."""
    machine = gdb.selected_inferior().architecture().name()
    portable = symbol_address("px__context_entry") is None
    arm = machine.startswith("aarch64")

    if not portable:
        offsets, size = AARCH64 if arm else X86_64
        registers = {name: field_word(sp + offset)
                     for name, offset in offsets.items()}
        registers["sp" if arm else "rsp"] = sp + size
        return registers
    context = gdb.Value(sp).cast(gdb.lookup_type("ucontext_t").pointer())
    machine_context = context["uc_mcontext"]
    if arm:
        registers = {f"x{i}": int(machine_context["regs"][i])
                     for i in range(19, 30)}
        registers["sp"] = int(machine_context["sp"])
        registers["pc"] = int(machine_context["pc"])
        return registers
    words = (1 << 64) - 1
    return {name: int(machine_context["gregs"][index]) & words
            for name, index in UCONTEXT_X86_64.items()}


class FrameId:
    def __init__(self, sp, pc):
        self.sp = gdb.Value(sp)
        self.pc = gdb.Value(pc)


class FiberUnwinder(Unwinder):
    """While a fiber is chosen, it is what the innermost frame returns to."""

    def __init__(self):
        super().__init__("parataxis")
        self.registers = None
        self.innermost = None

    def choose(self, registers):
        self.registers = None
        gdb.invalidate_cached_frames()
        if registers is not None:
            frame = gdb.newest_frame()
            self.innermost = (int(frame.read_register("sp")),
                              int(frame.read_register("pc")))
            self.registers = registers
            gdb.invalidate_cached_frames()

    def __call__(self, pending):
        if self.registers is None:
            return None
        here = (int(pending.read_register("sp")),
                int(pending.read_register("pc")))
        if here != self.innermost:
            return None
        sp = self.registers.get("rsp", self.registers.get("sp"))
        # An id on the fiber's own stack, below its frames: gdb takes a caller
        # whose frame lies further in for a broken stack.
        info = pending.create_unwind_info(FrameId(sp - 16, here[1]))
        for name, value in self.registers.items():
            kind = pending.read_register(name).type
            info.add_saved_register(name, gdb.Value(value).cast(kind))
        return info


UNWINDER = FiberUnwinder()
register_unwinder(None, UNWINDER, replace=True)


def current_loop():
    """The loop of the selected thread, or an error that says what to do."""
    try:
        loop = gdb.parse_and_eval("px__loop")
    except gdb.error as error:
        raise gdb.GdbError(f"no libparataxis with debug information: {error}")
    if int(loop) == 0:
        raise gdb.GdbError("the selected thread is in no px_run()")
    return loop


def fibers(loop):
    """Every record that is a fiber, in the order of the ids."""
    found = []
    chunk = loop["arena"]["chunks"]
    while int(chunk) != 0:
        found += [(chunk["fibers"] + i).dereference().address
                  for i in range(int(chunk["count"]))]
        chunk = chunk["next"]
    found = [fiber for fiber in found if state_of(fiber) != "free"]
    return sorted(found, key=lambda fiber: int(fiber["id"]))


def part_of(fiber, alive, ended):
    """A field of a fiber's life, or what is kept of it in the record."""
    life = fiber["life"]
    return life[alive] if int(life) else fiber[ended]


def enumerator(value, prefix):
    return str(value).replace(prefix, "").lower().replace("_", " ")


def state_of(fiber):
    kind = gdb.lookup_type("enum px_state")
    return enumerator(fiber["state"].cast(kind), "PX_STATE_")


def name_of(fiber):
    name = part_of(fiber, "name", "name_kept")
    return f"'{name.string()}'" if int(name) else ""


def place(address):
    """function at file:line of a code address."""
    function = gdb.execute(f"info symbol {address:#x}", to_string=True)
    function = function.split(" in section")[0].split(" + ")[0].strip()
    line = gdb.find_pc_line(address)
    if function.startswith("No symbol"):
        function = f"{address:#x}"
    if line.symtab is not None:
        return f"{function} at {line.symtab.filename}:{line.line}"
    return function


def time_of(loop):
    """The time now; of a core, or by a clock of the run's own, the last one
    that the loop has read."""
    connection = getattr(gdb.selected_inferior(), "connection", None)
    if not loop["virtual"] and connection and connection.type == "native":
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return int(loop["now"])


def describe(loop, fiber):
    text = f"{int(fiber['id']):>6}  {state_of(fiber):8}"
    name = name_of(fiber)
    if name:
        text += f" {name}"
    if state_of(fiber) == "parked":
        kind = enumerator(fiber["waiting"]["kind"], "PX_WAIT_")
        waited = time_of(loop) - int(fiber["life"]["since"])
        text += f"  in {kind}, {waited / 1e6:.3f} ms"
    site = int(part_of(fiber, "site", "site_kept"))
    if site:
        # The call is before the address that it returns to.
        text += f"  spawned in {place(site - 1)}"
    return text.rstrip()


def find(loop, number):
    for fiber in fibers(loop):
        if int(fiber["id"]) == number:
            return fiber
    raise gdb.GdbError(f"there is no fiber {number} in this thread's run")


def go_to(fiber):
    """Let gdb's frames be the fiber's. False if it has none of its own."""
    state = state_of(fiber)
    if state == "running":
        UNWINDER.choose(None)
        return True
    if state in ("new", "done") or int(fiber["sp"]) == 0:
        return False
    gdb.execute("set backtrace past-main on")
    UNWINDER.choose(saved_registers(int(fiber["sp"])))
    return True


def backtrace(fiber):
    if not go_to(fiber):
        print("(not begun)" if state_of(fiber) == "new" else "(no stack)")
        return
    try:
        text = gdb.execute("backtrace", to_string=True)
    finally:
        UNWINDER.choose(None)
    lines = text.splitlines(keepends=True)
    if state_of(fiber) != "running":
        # The innermost frame belongs to what runs.
        lines = [line for line in lines if not line.startswith("#0 ")]
    print("".join(lines), end="")


class Fibers(gdb.Command):
    """List the fibers of the selected thread's run."""

    def __init__(self):
        super().__init__("px-fibers", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        loop = current_loop()
        for fiber in fibers(loop):
            print(describe(loop, fiber))


class Backtrace(gdb.Command):
    """px-backtrace ID ...|all: the stacks of fibers."""

    def __init__(self):
        super().__init__("px-backtrace", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        loop = current_loop()
        if argument == "all":
            chosen = list(fibers(loop))
        else:
            chosen = [find(loop, int(gdb.parse_and_eval(word)))
                      for word in gdb.string_to_argv(argument)]
        if not chosen:
            raise gdb.GdbError("px-backtrace ID ...|all")
        for fiber in chosen:
            print(describe(loop, fiber))
            backtrace(fiber)


class Fiber(gdb.Command):
    """px-fiber ID: go to a fiber, frame 1 is where it parked.

    Without an argument: back to what runs.
    """

    def __init__(self):
        super().__init__("px-fiber", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        if not argument:
            UNWINDER.choose(None)
            gdb.execute("frame 0")
            return
        loop = current_loop()
        fiber = find(loop, int(gdb.parse_and_eval(argument)))
        if not go_to(fiber):
            raise gdb.GdbError("it has no frames: it is " + state_of(fiber))
        if state_of(fiber) != "running":
            gdb.execute("frame 1")


def forget(_event):
    """What was chosen is gone once the process has run."""
    UNWINDER.choose(None)


Fibers()
Backtrace()
Fiber()
gdb.events.cont.connect(forget)
