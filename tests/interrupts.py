"""Exceptions planted in the library's own code, as an interrupt raises them anywhere.

A *site* is a line, an instruction, or the return from a function in C, where Python looks for
signals. `sites` lists those that a call passes, each once; `interrupted` calls again, and raises
`Interrupt` at one of them.
"""

import sys
import threading
from pathlib import Path

EVENTS = ["opcode", "line", "signal"]

PACKAGE = Path(__file__).parent.parent / "src" / "stretto"


class Interrupt(KeyboardInterrupt):
    """Is raised where nobody expects it."""


def _run(work, see, files, event):
    """Give what `work()` does, while `see` is told of each site that it passes in these files."""
    chosen = tuple(str(at / file) for file in files for at in (PACKAGE, PACKAGE / "_engine"))
    watch = _monitored if sys.version_info >= (3, 12) else _traced
    thread = threading.current_thread()

    def alone():
        yield work()

    try:
        # In a generator, which has a state of its own of what is handled: from 3.14 on, an error
        # that is raised on a line of a handler stays what is handled.
        return watch(lambda: next(alone()), see, chosen, event)
    finally:
        assert threading.current_thread() is thread


def _traced(work, see, chosen, event):
    """Watch as Python 3.11 can."""

    def local(frame, what, _):
        if what == event:
            see((frame.f_code, frame.f_lasti if event == "opcode" else frame.f_lineno))
        return local

    def trace(frame, what, _):
        if not frame.f_code.co_filename.startswith(chosen):
            return None
        frame.f_trace_opcodes = event == "opcode"
        return local

    def profile(frame, what, _):
        code = frame.f_code
        if code.co_name == "<genexpr>":  # Python ignores what one raises that is let go
            return
        if what in ("call", "c_return") and code.co_filename.startswith(chosen):
            see((code, frame.f_lasti, what))

    if event == "signal":
        switch, watcher, before = sys.setprofile, profile, sys.getprofile()
    else:
        switch, watcher, before = sys.settrace, trace, sys.gettrace()
    switch(watcher)
    try:
        return work()
    finally:
        switch(before)


_TOOL = 4
"""The number of this tool among those that may monitor at once."""


def _monitored(work, see, chosen, event):
    """Watch as Python 3.12 and later can."""
    monitoring = sys.monitoring
    events = monitoring.events
    # Up to 3.14, signals are looked for as a part of the instruction that has called C; from 3.15
    # on before the next instruction, which may be in the block of a `with` that this one is not in.
    later = sys.version_info >= (3, 15)
    at_once = {"line": events.LINE, "opcode": events.INSTRUCTION, "signal": events.CALL}[event]
    inside = at_once | (events.INSTRUCTION if event == "signal" and later else 0)
    me = threading.get_ident()
    watched, due = [], []

    def told(code, *where):
        if event == "signal" and code.co_name == "<genexpr>":  # as above
            return
        if threading.get_ident() == me:
            see((code, *where))

    def begins(code, offset):
        if code.co_filename.startswith(chosen):
            if not monitoring.get_local_events(_TOOL, code):
                watched.append(code)
                monitoring.set_local_events(_TOOL, code, inside)
            if event == "signal":
                told(code, offset, "call")

    def returned(code, offset, *_):
        if later and threading.get_ident() == me:
            due[:] = [(code, offset, "c_return")]
        elif not later:
            told(code, offset, "c_return")

    def instruction(code, offset):
        if event == "opcode":
            told(code, offset)
        elif due and due[0][0] is code and threading.get_ident() == me:
            told(*due.pop())

    callbacks = {
        events.PY_START: begins,
        events.PY_RESUME: begins,
        events.LINE: told,
        events.INSTRUCTION: instruction,
        events.C_RETURN: returned,
    }
    monitoring.use_tool_id(_TOOL, "interrupts")
    try:
        for each, callback in callbacks.items():
            monitoring.register_callback(_TOOL, each, callback)
        monitoring.set_events(_TOOL, events.PY_START | events.PY_RESUME)
        return work()
    finally:
        monitoring.set_events(_TOOL, 0)
        for code in watched:
            monitoring.set_local_events(_TOOL, code, 0)
        for each in callbacks:
            monitoring.register_callback(_TOOL, each, None)
        monitoring.free_tool_id(_TOOL)


def sites(work, files=("",), event="line"):
    """The sites that `work()` passes in these files, in order."""
    found = {}
    _run(work, found.setdefault, files, event)
    return list(found)


def interrupted(work, site, files=("",), event="line"):
    """Whether an exception was raised, once, at this site while `work()` ran."""
    raised = []

    def see(passed):
        if passed == site and not raised:
            raised.append(site)
            raise Interrupt

    try:
        _run(work, see, files, event)
    except BaseException as error:
        # What the runtime calls may only fail: then the error is the runtime's own.
        if not raised or not (isinstance(error, Interrupt) or "Interrupt" in str(error)):
            raise
    return bool(raised)
