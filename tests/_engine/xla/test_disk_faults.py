"""Trouble on disk never stops a program: it is compiled, and what is wrong is said once."""

import logging
import os
import re
import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.xla import cache, disk, pjrt, store
from tests.interruptions import interrupted, lines_of


def said_by(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "stretto"]


@pytest.fixture
def result(again):
    """Asserts that a program runs, whatever is on disk."""

    def run():
        np.testing.assert_array_equal(again(lambda: st.jit(lambda x: x * 3 + 1)(snp.ones(4))), 4)

    return run


def test_what_the_runtime_refuses_is_compiled_and_replaced(kept_in, compiled_anew, result):
    result()
    (file,) = store.list_kept(kept_in)
    key = file.name.removesuffix(".program")
    for content in (b"", b"too short", bytes(32) + b"whole, and no program", bytes(2000)):
        store.write(kept_in, key, content, 1 << 30)
        before = len(compiled_anew)
        result()
        assert len(compiled_anew) == before + 1
        result()
        assert len(compiled_anew) == before + 1


def test_what_is_larger_than_the_bound_is_compiled_and_replaced(kept_in, compiled_anew, result):
    result()
    (file,) = store.list_kept(kept_in)
    os.truncate(os.path.join(kept_in, file.name), 10 << 30)
    result(), result()
    assert len(compiled_anew) == 2
    assert store.list_kept(kept_in)[0].size == file.size


def test_an_interruption_at_any_line_comes_out_of_the_call(kept_in, compiled_anew, monkeypatch):
    """While a program is looked for and kept; the next call gives its value, and is not kept
    waiting by a lock."""
    where = lambda name: name in (disk.__file__, store.__file__, cache.__file__)
    f = st.jit(lambda x: x * 3 + 1)
    assert float(f(2.0)) == 7
    made = {}

    def once(text, *how):  # to compile takes most of the time
        if text not in made:
            made[text] = compile_text(text, *how)
        return made[text]

    compile_text = cache.compile_text
    monkeypatch.setattr(cache, "compile_text", once)

    def call():
        assert float(f(2.0)) == 7

    def anew():
        st.clear_caches()
        store.clear(kept_in)

    anew()
    count = lines_of(call, where)
    assert count > 100
    for number in range(count):
        anew()
        assert interrupted(call, where, number), number
        names = os.listdir(kept_in) if os.path.isdir(kept_in) else []
        assert not [name for name in names if name.endswith(".beside")], number
        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive(), number
        assert len(store.list_kept(kept_in)) == 1, number
    call()


def test_what_the_runtime_cannot_give_as_bytes_is_not_kept(
    kept_in, compiled_anew, result, monkeypatch
):
    def refused(executable):
        raise pjrt.runtime().jax.JaxRuntimeError("UNIMPLEMENTED: no bytes for this")

    class Mute:
        def __init__(self, loaded):
            self.loaded = loaded

        def serialize(self):
            return refused(self.loaded)

    real = pjrt.serialize
    monkeypatch.setattr(
        pjrt, "serialize", lambda e: real(type("Program", (), {"loaded": Mute(e.loaded)}))
    )
    result(), result()
    assert len(compiled_anew) == 2 and not os.path.exists(kept_in)


def test_errors_of_the_compiler_are_those_of_the_compiler(kept_in):
    f = st.jit(lambda x: x + 1, compiler_options={"no_such_option": 1})
    with pytest.raises(st.errors.ConfigError, match="no_such_option"):
        f(1.0)
    assert not os.path.exists(kept_in)


def test_switched_off(kept_in, compiled_anew, result):
    with st.config(disk_cache=False):
        result()
        assert not os.path.exists(kept_in)
    result()
    with st.config(disk_cache=False):
        result()
    assert len(compiled_anew) == 3
    result()
    assert len(compiled_anew) == 3


def test_no_space(kept_in, compiled_anew, result):
    with st.config(disk_cache_size=0):
        result(), result()
    assert len(compiled_anew) == 2 and store.list_kept(kept_in) == []


def test_a_folder_open_to_others_is_said_once(kept_in, compiled_anew, result, caplog):
    result()
    os.chmod(kept_in, 0o777)
    for _ in range(3):
        result()
    (said,) = said_by(caplog)
    assert kept_in in said and "remove it; or set STRETTO_CACHE_DIR" in said
    assert len(compiled_anew) == 4


def test_a_file_open_to_others_is_said_once(kept_in, compiled_anew, result, caplog):
    result()
    (file,) = store.list_kept(kept_in)
    path = os.path.join(kept_in, file.name)
    os.chmod(path, 0o666)
    for _ in range(3):
        result()
    (said,) = said_by(caplog)
    assert path in said and "remove it" in said
    assert len(compiled_anew) == 4 and os.path.exists(path)


def test_a_directory_that_cannot_be_made_is_said_once(
    tmp_path, kept_in, result, caplog, monkeypatch
):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("STRETTO_CACHE_DIR", str(tmp_path / "file"))
    for _ in range(3):
        result()
    (said,) = said_by(caplog)
    assert f"cannot be kept in {tmp_path / 'file' / 'programs'}: Not a directory" in said
    assert "STRETTO_DISK_CACHE" in said


def test_without_a_home(kept_in, result, caplog, monkeypatch):
    monkeypatch.setattr(disk, "cache_directory", lambda: None)
    result()
    assert disk.folder() is None and not said_by(caplog)


def test_a_log_says_that_a_program_came_from_disk(kept_in, result, caplog):
    result()
    with st.config(log_compiles=True):
        result()
        lax.scan(lambda c, _: (c + 7, None), 0, None, length=9000)
        st.clear_caches()
        lax.scan(lambda c, _: (c + 7, None), 0, None, length=9000)
    words = [message.split(" for ")[0] for message in said_by(caplog)]
    assert words == ["loaded from disk function", "compiled scan", "loaded from disk scan"]
    assert all(re.search(r"(load|compile) \d+\.\d ms$", message) for message in said_by(caplog))


def test_the_log_is_the_packages(kept_in, result, caplog):
    os.makedirs(kept_in, 0o777)
    os.chmod(kept_in, 0o777)
    result()
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("stretto", logging.WARNING)
