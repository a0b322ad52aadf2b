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
        "index = st.distributed.process_index()\n"
        "print(st.distributed.process_allgather(index), len(st.devices()))\n"
    )
    status, out, err = ran("-n", "2", "--devices", "2", path)
    assert status == 0, err
    assert sorted(out.splitlines()) == ["[0] [0 1] 4", "[1] [0 1] 4"] and err == ""


def test_one_that_fails_is_named_and_ends_the_others(script):
    path = script("if here == '1': sys.exit(5)\ntime.sleep(600)")
    told = "so the others were told to end\n"
    said = f"stretto launch: process 1 ended with status 5, {told}"
    assert ran("-n", "3", path) == (5, "", said)
    path = script("if here == '1': os.kill(os.getpid(), 9)\ntime.sleep(600)")
    said = f"stretto launch: process 1 was ended by SIGKILL, {told}"
    assert ran("-n", "2", path) == (128 + 9, "", said)


def test_what_the_one_that_failed_wrote_last_is_said_again_where_others_wrote_after_it(script):
    path = script(
        "import signal\n"
        "def end(number, frame):\n"
        "    time.sleep(0.5)\n"  # until the others' lines have been read
        "    print('told', file=sys.stderr)\n"
        "    sys.exit(1)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "if here == '0': time.sleep(600)\n"
        "time.sleep(1)\n"
        "for n in range(20): print('line', n, file=sys.stderr)\n"
        "raise ValueError('the reason')\n"
    )
    status, out, err = ran("-n", "2", path)
    first, _, last = err.partition("stretto launch: process 1 ended with status 1")
    assert status == 1 and out == "" and "[0] told\n" in first
    assert last.startswith(", so the others were told to end; it wrote last:\n[1] line 16\n")
    assert last.endswith("[1] ValueError: the reason\n")


def test_one_that_is_lost_is_named_and_not_those_that_lose_it(script):
    path = script(
        "import stretto as st, signal\n"
        "st.distributed.initialize()\n"
        "if here == '1': os.kill(os.getpid(), signal.SIGSEGV)\n"
        "st.distributed.process_allgather(1)\n"
    )
    status, out, err = ran("-n", "2", path)
    assert status == 128 + signal.SIGSEGV and out == ""
    assert "stretto launch: process 1 was ended by SIGSEGV, so the others" in err


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot say whose child it is")
@pytest.mark.parametrize("first", [True, False])
def test_no_coordinator_is_left_that_was_stopped(script, first):
    """Whether its parent still lives when it is stopped, or not."""
    path = script(
        "import stretto as st, signal\n"
        "from stretto._engine.xla import processes\n"
        "st.distributed.initialize(heartbeat_timeout=2)\n"
        "if here == '0':\n"
        "    pid = processes._coordinators[0].pid\n"
        "    st.distributed.broadcast_one_to_all(pid)\n"
        "    print(pid)\n"
        f"    {'os.kill(pid, signal.SIGSTOP); time.sleep(600)' if first else 'os._exit(0)'}\n"
        "pid = int(st.distributed.broadcast_one_to_all(0))\n"
        "time.sleep(1)\n"
        "os.kill(pid, signal.SIGSTOP)\n"
        "os._exit(3)\n"
    )
    status, out, err = ran("-n", "2", path)
    (pid,) = [int(line.split()[1]) for line in out.splitlines()]
    assert status, err
    assert not runs(pid)


def test_who_asks_twice_does_not_wait(script):
    path = script(
        "import signal\n"
        "signal.signal(signal.SIGINT, lambda *_: print('not yet'))\n"
        "print('ready')\n"
        "for _ in range(600): time.sleep(1)\n"
    )
    with begun("-n", "2", path) as process:
        try:
            for said in ("ready", "not yet"):
                lines = [process.stdout.readline() for _ in range(2)]
                assert sorted(lines) == [f"[{i}] {said}\n" for i in range(2)]
                process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert (out, err, process.returncode) == ("", "", 128 + signal.SIGKILL)


def test_the_job_has_a_secret_of_its_own(script, monkeypatch):
    monkeypatch.setenv("STRETTO_JOB_SECRET", "that of another one")
    path = script("print(os.environ['STRETTO_JOB_SECRET'])")
    _, out, _ = ran("-n", "2", path)
    first, second = [line.split(" ", 1)[1] for line in out.splitlines()]
    assert first == second and re.fullmatch("[0-9a-f]{64}", first)
    assert ran("-n", "1", path)[1] != f"[0] {first}\n"


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
