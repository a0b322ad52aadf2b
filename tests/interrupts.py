"""Exceptions planted in the library's own code, as an interrupt raises them anywhere.

A *site* is a line, an instruction, or the return from a function in C, where Python looks for
signals. `sites` lists those that a call passes, each once; `interrupted` calls again, and raises
`Interrupt` at one of them.
"""

import sys
import threading
from pathlib import Path

# Python 3.12 tells of instructions only where they were asked for before the tracing began.
EVENTS = ["line", "signal"] if sys.version_info[:2] == (3, 12) else ["opcode", "line", "signal"]

PACKAGE = Path(__file__).parent.parent / "src" / "stretto"


class Interrupt(KeyboardInterrupt):
    """Is raised where nobody expects it."""


def _watched(see, files, event):
    """Run by `sys.settrace` or `sys.setprofile`: `see` is told of each site in these files."""
    chosen = tuple(str(at / file) for file in files for at in (PACKAGE, PACKAGE / "_engine"))

    def local(frame, what, _):
        if what == event:
            see((frame.f_code, frame.f_lasti if event == "opcode" else frame.f_lineno))
        return local

    def trace(frame, what, _):
        if not frame.f_code.co_filename.startswith(chosen):
            return None
        frame.f_trace = local  # first: Python 3.13 looks for it
        frame.f_trace_opcodes = event == "opcode"
        return local

    def profile(frame, what, _):
        code = frame.f_code
        if code.co_name == "<genexpr>":  # Python ignores what one raises that is let go
            return
        if what in ("call", "c_return") and code.co_filename.startswith(chosen):
            see((code, frame.f_lasti, what))

    return (sys.setprofile, profile) if event == "signal" else (sys.settrace, trace)


def _run(work, see, files, event):
    switch, watcher = _watched(see, files, event)
    thread = threading.current_thread()
    before = sys.gettrace() if switch is sys.settrace else sys.getprofile()
    switch(watcher)
    try:
        return work()
    finally:
        switch(before)
        assert threading.current_thread() is thread


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
