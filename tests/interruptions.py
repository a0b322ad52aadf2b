"""Interruptions planted at each line that Python runs, as Ctrl-C could fall there."""

import sys


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


def _run(act, where, number):
    count = 0

    def line(frame, event, _):
        nonlocal count
        if event == "line":
            count += 1
            if count - 1 == number:
                raise KeyboardInterrupt
        return line

    def call(frame, event, _):
        return line if where(frame.f_code.co_filename) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
