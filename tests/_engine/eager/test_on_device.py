"""The interpreter of ``default_device``; ``api/test_default_device`` has what it does."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.interpreter import state
from stretto._engine.eager.interpreter import EAGER
from stretto._engine.eager.on_device import at_home, default_sharding

pytestmark = pytest.mark.devices


def test_the_interpreter_is_current_in_the_block_alone():
    x = snp.ones(2)
    assert state.interpreter is EAGER and default_sharding() is None and at_home(x) is x
    with st.default_device("cpu:3"):
        assert default_sharding() == st.sharding.SingleDeviceSharding(st.devices()[3])
        assert at_home(x).sharding == default_sharding()
        elsewhere = st.device_put(x, "cpu:5")
        assert at_home(elsewhere) is elsewhere and at_home(7) == 7
    assert state.interpreter is EAGER


def test_operations_that_call_python_and_that_fail():
    with st.default_device("cpu:3"):
        out = st.pure_callback(np.sin, st.ShapeDtypeStruct((2,), np.float32), snp.ones(2))
        assert out.device == st.devices()[3]
        with pytest.raises(ValueError, match="broadcast"):
            snp.ones(2) + snp.ones(3)
        kept = []
        st.jit(kept.append)(snp.ones(2))
        with pytest.raises(st.errors.EscapedTracerError):
            snp.sin(kept[0])
