"""A training killed at ten random points, some while it writes, resumes to the same bits."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from stretto.ensemble import Checkpoints

PROGRAM = Path(__file__).with_name("killed.py")
KILLS = 10


def begun(directory, out):
    return subprocess.Popen([sys.executable, str(PROGRAM), str(directory), str(out)])


def result(directory, out):
    assert begun(directory, out).wait() == 0
    with np.load(out) as found:
        return dict(found)


def reached(directory):
    return max(Checkpoints(directory).steps(), default=0)


def unfinished(directory):
    return [name for name in os.listdir(directory) if name.startswith(".stretto-")]


def test_the_same_bits_after_ten_kills(tmp_path):
    expected = result(tmp_path / "unbroken", tmp_path / "unbroken.npz")
    # Three of five members were stopped early, so that the others were packed anew.
    assert expected["stopped"][:, 0].tolist() == [0, 2, 4]
    assert expected["stopped"][:, 1].max() < 50

    draw = random.Random(5)
    directory, out = tmp_path / "killed", tmp_path / "killed.npz"
    caught = 0
    for number, target in enumerate(sorted(draw.sample(range(1, 90), KILLS))):  # of 120 steps
        process = begun(directory, out)
        while process.poll() is None and reached(directory) < target:
            time.sleep(0.001)
        time.sleep(0.02 * draw.random())
        while number % 2 and process.poll() is None and not unfinished(directory):
            pass  # every other kill falls into the writing of a file
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it had ended before it was killed"
        caught += bool(unfinished(directory))
    assert caught, "no kill fell into the writing of a file"

    got = result(directory, out)
    assert set(got) == set(expected)
    for name, x in expected.items():
        np.testing.assert_array_equal(got[name], x, err_msg=name)
    assert not unfinished(directory)
