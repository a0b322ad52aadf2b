"""Processes that are lost in the midst of steps: the error, what goes on, and beginning again."""

import contextlib
import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from stretto._engine.xla import processes
from stretto._engine.xla.coordinator import free_port
from stretto._engine.xla.handshake import line
from stretto._engine.xla.processes import Launcher
from tests.processes import read, started, together, wait_for

LOSING = """
st.distributed.initialize(heartbeat_timeout=HEARTBEAT)
here = st.distributed.process_index()
mesh = st.make_mesh((len(st.devices()),), ("d",))
mean = st.jit(
    st.shard_map(lambda x: lax.pmean(x, "d"), mesh=mesh, in_specs=P("d"), out_specs=P("d"))
)
x = st.device_put(np.arange(12.0), NamedSharding(mesh, P("d")))
step, since = 0, time.monotonic()
try:
    while True:
        if here == LOST and step == 20:
            HOW
        x = mean(x)
        if step % 3 == 0:
            since = time.monotonic()
            x.block_until_ready()
        step += 1
except st.errors.LostProcessError as error:
    print("lost:", error)
    assert isinstance(error, RuntimeError) and step >= 20
print("seconds:", time.monotonic() - since)

# What is in this process alone goes on: compiled, split over its devices, or not.
assert st.jit(lambda a: a @ a)(snp.ones((200, 200)))[0, 0] == 200
local = st.distributed.local_devices()
own = st.make_mesh((len(local),), ("l",), devices=local)
total = st.shard_map(lambda a: lax.psum(a, "l"), mesh=own, in_specs=P("l"), out_specs=P())
assert total(np.arange(4.0)).sum() == 6
try:
    mean(x).block_until_ready()
    print("no error")
except st.errors.LostProcessError as error:
    print("again:", error)
"""
KILL, STOP = "os.kill(os.getpid(), signal.SIGKILL)", "os.kill(os.getpid(), signal.SIGSTOP)"

REFORMING = """
st.distributed.shutdown()
assert not st.distributed.is_initialized() and st.distributed.process_count() == 1
assert len(st.devices()) == 2 and all(device.is_local for device in st.devices())
assert st.jit(lambda a: a @ a)(snp.ones((100, 100)))[0, 0] == 100
st.distributed.initialize(os.environ["STRETTO_COORDINATOR"], 2, here - 1)
assert (st.distributed.process_index(), st.distributed.process_count()) == (here - 1, 2)
assert len(st.devices()) == 4
try:
    mean(x)
except RuntimeError as error:
    print("past:", error)
mesh = st.make_mesh((4,), ("d",))
y = st.device_put(np.arange(4.0), NamedSharding(mesh, P("d")))
assert st.jit(lambda y: (y * 2).sum())(y) == 12
assert (y + 1).addressable_shards[0].data.tolist() == [1 + 2 * (here - 1)]
assert st.distributed.process_allgather(np.int32(here)).tolist() == [1, 2]
print("re-formed")
"""


def losing(how, lost, heartbeat=60):
    replacements = {"HEARTBEAT": str(heartbeat), "LOST": str(lost), "HOW": how}
    return re.sub("|".join(replacements), lambda match: replacements[match[0]], LOSING)


def seconds(text):
    return float(re.search(r"seconds: (.*)", text)[1])


def test_one_that_is_killed_and_the_others_begin_again():
    """It is the one that started the coordinator, which outlives it."""
    _, *others = together(losing(KILL, 0) + REFORMING, 3, 2, lost=[0])
    for index, text in enumerate(others, 1):
        loss = f"process {index} of 3 cannot compute with the others: process 0 died"
        assert f"lost: {loss}" in text and f"again: {loss}" in text and "no error" not in text
        assert "past: these devices" in text and text.endswith("re-formed\n")
        assert seconds(text) < 20  # some 0.6, on a machine that has time


def test_one_that_is_stopped():
    """With one device each, the runtime waits for it where a program is started."""
    text, _ = together(losing(STOP, 1, heartbeat=2), 2, 1, lost=[1])
    loss = "process 0 of 2 cannot compute with the others: process 1 does not answer"
    assert f"lost: {loss}" in text and f"again: {loss}" in text
    assert 1 < seconds(text) < 30  # some 2.5


def test_one_that_ends():
    texts = together(losing("raise SystemExit", 1), 2, 1)
    loss = "process 0 of 2 cannot compute with the others: process 1 has ended"
    assert f"lost: {loss}" in texts[0] and f"again: {loss}" in texts[0]
    assert texts[1] == ""


def test_a_slow_one_is_waited_for():
    """It gives signs of life, however long its step takes."""
    script = """
    st.distributed.initialize(heartbeat_timeout=0.6)
    if st.distributed.process_index():
        time.sleep(2.5)
    print(st.distributed.process_allgather(np.int32(st.distributed.process_index())))
    """
    assert together(script) == ["[0 1]\n"] * 2


def test_ten_thousand_messages_of_strangers_do_not_keep_a_job_from_its_end(tmp_path):
    """One process has come; the other, whose place strangers claim, comes when all were sent."""
    script = """
    while os.environ["STRETTO_PROCESS_ID"] == "1" and not os.path.exists(os.environ["GO"]):
        time.sleep(0.01)
    st.distributed.initialize(initialization_timeout=60)
    print(st.distributed.process_allgather(np.int32(st.distributed.process_index())))
    time.sleep(0.5)
    print(st.distributed.process_allgather(np.int32(st.distributed.process_index() + 2)))
    """
    go = tmp_path / "go"
    port = free_port()
    where = {"GO": str(go), "STRETTO_COORDINATOR": f"127.0.0.1:{port}"}
    noise = [
        *(b"5\n", b"null\n", b'{"join": 0}\n', b"[" * 3000 + b"\n", b'{"bye": 1}\n'),
        *(line(join=1, of=2, devices=1), line(join=-1, of=2, devices="x")),
        line(join=1, of=2, devices=1, challenge="0" * 64, proof="0" * 64),
        *(b"GET / HTTP/1.1\r\n\r\n", b"\0" * 5000, b"half a line"),
    ]
    with started(script, **where) as processes:
        sent, open_ones = 0, []
        end = time.monotonic() + 60
        while sent < 10_000:
            assert time.monotonic() < end and all(one.process.poll() is None for one in processes)
            try:
                stranger = socket.create_connection(("127.0.0.1", port), timeout=60)
            except ConnectionRefusedError:  # it does not listen yet
                time.sleep(0.05)
                continue
            open_ones.append(stranger)
            with contextlib.suppress(OSError):
                for n in range(20):
                    stranger.send(noise[(sent + n) % len(noise)])
            sent += 20
            if len(open_ones) > 200:
                open_ones.pop(0).close()
        go.touch()
        for one in processes:
            assert one.process.wait(60) == 0, read(one)
            assert read(one) == "[0 1]\n[2 3]\n"
        for one in open_ones:
            one.close()


def test_a_process_with_another_secret_takes_no_part():
    script = """
    if os.environ["STRETTO_PROCESS_ID"] == "1":
        os.environ["STRETTO_JOB_SECRET"] = "0123456789abcdef0"
    try:
        st.distributed.initialize(initialization_timeout=3)
    except RuntimeError as error:
        print(error)
    """
    first, second = together(script, STRETTO_JOB_SECRET="0123456789abcdef")
    assert "of 2 processes these have not come: 1" in first
    assert "process 1 of 2 could not join the others" in second
    assert "its secret is another one than that of process 0" in second


def test_no_secret_where_other_machines_reach_the_coordinator():
    script = """
    try:
        st.distributed.initialize(os.environ["AT"], 2, here, **eval(os.environ["HOW"]))
    except RuntimeError as error:
        print(error)
    """.replace("here", 'int(os.environ["STRETTO_PROCESS_ID"])')
    for at, how, expected in [
        ("192.0.2.77:4567", {}, "192.0.2.77:4567 may be reached from other machines, and this job"),
        ("no.such.invalid:4567", {}, "has no secret"),
    ]:
        texts = together(script, AT=at, HOW=repr(how))
        assert all(expected in text and "set STRETTO_JOB_SECRET" in text for text in texts)
    how = {"coordinator_bind_address": "0.0.0.0:4568"}
    script = script.replace(", 2, ", ", 1, ")
    (text,) = together(script, 1, AT="127.0.0.1:4567", HOW=repr(how))
    assert "0.0.0.0:4568 may be reached from other machines" in text


def test_another_address_to_listen_at():
    """Process 0 listens everywhere, and at another port than the others were told."""
    port = free_port()
    script = """
    here = int(os.environ["STRETTO_PROCESS_ID"])
    bound = os.environ["BOUND"] if here == 0 else None
    st.distributed.initialize(coordinator_bind_address=bound)
    print(st.distributed.process_allgather(np.int32(here)))
    """
    where = {"STRETTO_COORDINATOR": f"127.0.0.1:{port}", "BOUND": f"0.0.0.0:{port}"}
    secret = {"STRETTO_JOB_SECRET": "0123456789abcdef"}
    assert together(script, **where, **secret) == ["[0 1]\n"] * 2


def test_a_name_that_is_of_this_machine_alone(monkeypatch):
    """Others would look for it elsewhere, and process 0 says so."""
    monkeypatch.setattr(processes, "is_local", lambda host: True)
    named = lambda host, *rest, **how: "127.0.1.1"
    monkeypatch.setattr(processes, "_start_coordinator", named)

    class Alone:
        def join(self, deadline):
            raise TimeoutError("of 2 processes these have not come: 1")

        def close(self):
            pass

    monkeypatch.setattr(processes, "_introduce", lambda *about: (None, Alone()))
    monkeypatch.setattr(
        processes, "_coordinators", [SimpleNamespace(stdin=SimpleNamespace(close=lambda: None))]
    )
    words = "not come: 1; process 0 listens at 127.0.1.1, which only this machine reaches"
    with pytest.raises(RuntimeError, match=words):
        processes.join("node-7", 1234, 2, 0, 1, 1)


def test_the_coordinator_ends_where_it_was_stopped():
    """The system ends it with the process that has started it."""
    script = """
    st.distributed.initialize()
    print("pid", *[one.pid for one in st._engine.xla.processes._coordinators])
    os.kill(st._engine.xla.processes._coordinators[0].pid, signal.SIGSTOP)
    print("stopped")
    time.sleep(600)
    """
    with started(script, 1) as (only,):
        wait_for(only, "stopped")
        pid = int(re.search(r"pid (\d+)", read(only))[1])
        assert running(pid)
        only.process.kill()
        only.process.wait()
        end = time.monotonic() + 30
        try:
            while running(pid):
                assert time.monotonic() < end
                time.sleep(0.05)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_the_coordinator_ends_with_the_last():
    script = """
    st.distributed.initialize()
    print("pid", *[one.pid for one in st._engine.xla.processes._coordinators])
    while True:
        time.sleep(0.1)
    """
    with started(script) as (first, second):
        wait_for(second, "pid")
        wait_for(first, "pid")
        first.output.seek(0)
        pid = int(re.search(r"pid (\d+)", first.output.read())[1])
        first.process.kill()
        first.process.wait()
        time.sleep(0.5)
        assert running(pid) and second.process.poll() is None
        second.process.kill()
        second.process.wait()
        end = time.monotonic() + 60
        while running(pid):
            assert time.monotonic() < end
            time.sleep(0.05)


def test_a_fork_takes_no_part():
    script = """
    st.distributed.initialize()
    import warnings
    warnings.simplefilter("ignore")  # of threads, from Python 3.12 on
    pid = os.fork()
    if not pid:
        assert st.distributed.process_count() == 1 and not st.distributed.is_initialized()
        assert snp.ones(2).sum() == 2
        raise SystemExit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    print(st.distributed.process_allgather(np.int32(st.distributed.process_index())))
    """
    assert together(script) == ["[0 1]\n"] * 2


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_where_process_0_cannot_listen():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(RuntimeError, match=r"cannot listen at 127.0.0.1:\d+: .*in use"):
            processes.join("127.0.0.1", port, 2, 0, 10, 10)
    assert not processes.takes_part()


def test_where_nobody_comes():
    with pytest.raises(RuntimeError, match=r"process 1 of 2 .* process 0 has not come: .*refused"):
        processes.join("127.0.0.1", 1, 2, 1, 0.1, 10)
    processes.leave()
    processes.check()
    assert not processes.takes_part() and not processes.took_part()


# The thread in which programs of several processes are started.


def nothing():
    """There is no reason to give up."""


def test_calls_one_after_the_other():
    launcher = Launcher()
    here = []
    for i in range(3):
        assert launcher.call(lambda i=i: here.append(threading.get_ident()) or i, nothing) == i
    assert len({*here}) == 1 and threading.get_ident() not in here
    with pytest.raises(ZeroDivisionError):
        launcher.call(lambda: 1 / 0, nothing)
    assert launcher.call(lambda: "still there", nothing) == "still there"
    launcher.freeze()  # no call is being made
    assert launcher.call(lambda: "as before", nothing) == "as before"
    launcher.end()
    launcher._thread.join(60)
    assert not launcher._thread.is_alive()


def test_a_call_that_does_not_return():
    launcher, go_on = Launcher(), threading.Event()

    def give_up():
        raise TimeoutError

    for _ in range(2):  # the second waits for the first
        with pytest.raises(TimeoutError):
            launcher.call(lambda: go_on.wait(60), give_up)
    go_on.set()
    assert launcher.call(lambda: "again", nothing) == "again"
    launcher.end()


def test_python_ends_while_a_call_is_being_made():
    """It would return half a second later, in the midst of the end."""
    code = """
import ctypes, time
from stretto._engine.xla.processes import Launcher
launcher = Launcher()
def give_up():
    raise TimeoutError
try:
    launcher.call(lambda: ctypes.CDLL(None).usleep(500_000), give_up)
except TimeoutError:
    launcher.freeze()
time.sleep(1)
print(launcher._task is not None)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    frozen = "True" if hasattr(ctypes.CDLL(None), "pause") else "False"
    assert (done.returncode, done.stdout.strip()) == (0, frozen), done.stderr
