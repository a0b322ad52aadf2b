"""Names of operations in profiles."""

import stretto as st
import stretto.numpy as snp
from stretto._engine.xla.profiling import op_names


def test_names_by_module_and_instruction():
    def named(x):
        with st.named_scope("part"):
            return snp.sin(x) @ x

    compiled = st.jit(named).lower(snp.ones((4, 4))).compile()
    names = op_names({"named"})
    assert any("part" in name for name in names.values())
    assert {module for module, _ in names} == {"named"}
    assert op_names({"no such module"}) == {}
    del compiled
