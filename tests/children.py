"""Work done in a forked child, as `os.fork` makes one."""

import os
import pickle
import signal
import traceback
import warnings

__all__ = ["in_a_child"]

_SECONDS = 60


def in_a_child(work):
    """What `work()` gives there, or the error that it raises; an error where the child hangs."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, from Python 3.12 on
        pid = os.fork()
    if not pid:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_SECONDS)
        try:
            try:
                said = work()
            except Exception as error:
                traceback.print_exc()
                said = error
            with open(writing, "wb") as file:
                pickle.dump(said, file)
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        said = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == 0, f"the child hung, or died: status {status}"
    return pickle.loads(said)
