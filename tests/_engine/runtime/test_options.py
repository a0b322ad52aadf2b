"""The compiler's options for a text: ours, those of ``XLA_FLAGS``, and the user's."""

import stretto as st
import stretto.numpy as snp
from stretto._engine.runtime.options import library_of, options_for

LIBRARY, WITHOUT = "xla_cpu_experimental_ynn_fusion_type", "xla_disable_hlo_passes"
PLAIN = st.jit(lambda x: x @ x).lower(snp.ones((4, 4))).as_text()
BARRED = st.jit(lambda x: st.lax.optimization_barrier(x) @ x).lower(snp.ones((4, 4))).as_text()


def test_barriers_stay(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert WITHOUT not in dict(options_for(PLAIN, ()))
    assert dict(options_for(BARRED, ()))[WITHOUT] == "cse_barrier_expander"


def test_the_users_options_come_first(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_disable_hlo_passes=fusion")
    assert WITHOUT not in dict(options_for(BARRED, ()))
    assert LIBRARY in dict(options_for(BARRED, ()))
    assert dict(options_for(BARRED, ((LIBRARY, ""),)))[LIBRARY] == ""


def test_the_library_is_theirs_to_choose(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert library_of(PLAIN, ()).work == dict(options_for(PLAIN, ()))[LIBRARY] != ""
    chosen = library_of(PLAIN, ((LIBRARY, "LIBRARY_FUSION_TYPE_DOT"),))
    assert (chosen.work, chosen.products) == ("LIBRARY_FUSION_TYPE_DOT", True)
    assert "decide" in chosen.reason
    monkeypatch.setenv("XLA_FLAGS", f"--{LIBRARY}=LIBRARY_FUSION_TYPE_DOT")
    assert library_of(PLAIN, ()).work == ""
    assert LIBRARY not in dict(options_for(PLAIN, ()))


def test_xla_leaves_barriers_in_place():
    hlo = st.jit(lambda x: snp.sin(st.lax.optimization_barrier(x @ x))).lower(snp.ones((4, 4)))
    assert "opt-barrier(" in hlo.compile().as_text()
