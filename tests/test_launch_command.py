"""The command ``stretto launch``."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stretto import cli

SECONDS = 120


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "script.py"
        path.write_text(f"import os, sys, time\nhere = os.environ['STRETTO_PROCESS_ID']\n{text}")
        return str(path)

    return write


def begun(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "stretto", "launch", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ran(*arguments):
    with begun(*arguments) as process:
        try:
            out, err = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    return process.returncode, out, err


def test_each_line_has_the_number_of_its_process(script):
    path = script(
        "print(sys.argv[1:], os.environ['STRETTO_NUM_CPU_DEVICES'])\n"
        "print('two', os.environ['STRETTO_NUM_PROCESSES'], file=sys.stderr)\n"
    )
    status, out, err = ran("-n", "3", "--devices", "2", path, "-n", "x", "--y=1")
    assert status == 0
    assert sorted(out.splitlines()) == [f"[{i}] ['-n', 'x', '--y=1'] 2" for i in range(3)]
    assert sorted(err.splitlines()) == [f"[{i}] two 3" for i in range(3)]


def test_they_compute_together(script):
    path = script(
        "import stretto as st\n"
        "st.distributed.initialize()\n"
        "print(st.multihost.process_allgather(st.process_index()), st.device_count())\n"
    )
    status, out, err = ran("-n", "2", "--devices", "2", path)
    assert status == 0, err
    lines = [line for line in out.splitlines() if "Gloo" not in line]
    assert sorted(lines) == ["[0] [0 1] 4", "[1] [0 1] 4"]


def test_one_that_fails_ends_the_others(script):
    path = script("if here == '1': sys.exit(5)\ntime.sleep(600)")
    assert ran("-n", "3", path) == (5, "", "")
    path = script("if here == '1': os.kill(os.getpid(), 9)\ntime.sleep(600)")
    assert ran("-n", "2", path)[0] == 128 + 9


def runs(number):
    try:
        status = Path(f"/proc/{number}/stat").read_text("ascii")
    except OSError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot say so")
def test_none_is_left_where_the_launcher_is_killed(script):
    with begun("-n", "2", script("print(os.getpid(), flush=True)\ntime.sleep(600)")) as process:
        said = sorted([process.stdout.readline(), process.stdout.readline()])
        numbers = [int(line.split()[1]) for line in said]
        process.kill()
    end = time.monotonic() + SECONDS
    while any(map(runs, numbers)):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_passed_on(script, number):
    path = script(
        "import signal\n"
        "def end(number, frame):\n"
        "    print('end', number)\n"
        "    sys.exit(0)\n"
        "for number in (signal.SIGTERM, signal.SIGINT):\n"
        "    signal.signal(number, end)\n"
        "print('ready')\n"
        "time.sleep(600)\n"
    )
    with begun("-n", "2", path) as process:
        try:
            lines = [process.stdout.readline() for _ in range(2)]
            assert sorted(lines) == ["[0] ready\n", "[1] ready\n"]
            process.send_signal(number)
            out, err = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert sorted(out.splitlines()) == [f"[{i}] end {number:d}" for i in range(2)], err
    assert process.returncode == 128 + number


def test_none_is_left_where_one_ignores_the_end(script, monkeypatch):
    path = script(
        "import signal\n"
        "if here == '0':\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    print(os.getpid())\n"
        "    time.sleep(600)\n"
        "time.sleep(1)\n"
        "sys.exit(1)\n"
    )
    start = time.monotonic()
    status, out, _ = ran("-n", "2", path)
    assert status == 1 and time.monotonic() - start < SECONDS / 2
    pid = int(re.fullmatch(r"\[0\] (\d+)\n", out)[1])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["x.py"], "required: -n"),
        (["-n", "0", "x.py"], "expected a number, 1 or more; got 0"),
        (["-n", "2"], "required: script"),
    ],
)
def test_wrong_arguments(capsys, arguments, message):
    assert cli.main(["launch", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_script_that_is_not_there(capfd):
    assert cli.main(["launch", "-n", "1", "no-such-script.py"]) == 2
    assert "[0] " in capfd.readouterr().err
