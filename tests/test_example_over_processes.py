"""The example of several processes: killed in the midst, and gone on with on one device."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from examples import over_processes
from stretto.ensemble import Checkpoints

SECONDS = 240
"""Far more than it takes."""


def steps_in(directory):
    return Checkpoints(directory).steps()


def children_of(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    return sorted(map(int, children))


def losses_of(directory, steps):
    return over_processes.main(str(directory), steps)


def test_killed_and_gone_on_with_on_one_device(tmp_path):
    together, straight = tmp_path / "together", tmp_path / "straight"
    command = [sys.executable, "-m", "stretto", "launch", "-n", "2", "--devices", "2"]
    command += [over_processes.__file__, str(together), "100000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        end = time.monotonic() + SECONDS
        while len(steps_in(together)) < 2:
            assert process.poll() is None, process.stdout.read()
            assert time.monotonic() < end
            time.sleep(0.02)
        os.kill(children_of(process.pid)[1], signal.SIGKILL)
        process.wait(SECONDS)  # the launcher ends the other one
        assert process.returncode != 0
    finally:
        process.terminate()
        process.communicate()
    reached = steps_in(together)[-1]
    assert reached % 4 == 0
    resumed = losses_of(together, reached + 8)
    assert steps_in(together)[-1] == reached + 8
    wanted = losses_of(straight, reached + 8)
    assert resumed.shape == wanted.shape == ((reached + 8) // 4, over_processes.MEMBERS)
    np.testing.assert_allclose(resumed, wanted, rtol=1e-3)


def test_it_says_how_far_it_came(tmp_path, capsys):
    losses = losses_of(tmp_path, 4)
    assert re.search(r"step 4 on 1 devices: losses", capsys.readouterr().out)
    assert np.isfinite(losses).all()
