"""Interruptions planted at each line that Python runs, as Ctrl-C could fall there."""

import dis
import linecache
import sys
import threading


def lines_of(act, where):
    """How many lines ``act`` runs in the files whose names ``where`` accepts."""
    return _run(act, where, None)


def interrupted(act, where, number):
    """Run ``act``, and raise ``KeyboardInterrupt`` before the line of this number; whether it
    came out of it."""
    try:
        _run(act, where, number)
    except KeyboardInterrupt:
        return True
    return False


def _leaves_a_block(frame):
    """Whether the line is a ``with`` again, as its block ends.

    Tracing has a line there, and Python none: it looks for signals after calls, when the block is
    not yet left, and then after ``__exit__``.
    """
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    return line.startswith("with ") and name in ("LOAD_CONST", "NOP")


def _run(act, where, number):
    count = 0

    def line(frame, event, _):
        nonlocal count
        if event == "line" and not _leaves_a_block(frame):
            count += 1
            if count - 1 == number:
                raise KeyboardInterrupt
        return line

    def call(frame, event, _):
        name = frame.f_code.co_filename
        return line if where(name) and "weakref" not in name else None  # whose errors are dropped

    def run():
        sys.settrace(call)
        try:
            act()
        except BaseException as error:
            raised.append(error.with_traceback(None))
        finally:
            sys.settrace(None)

    # In a thread that ends: where a trace raises in a handler, Python keeps what was handled.
    raised = []
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    for error in raised:
        raise error
    return count
