"""What is refused is refused by name, once it is used."""

import pytest

from stretto.compat.jax.refused import RefusedName
from tests.compat.jax.running import prints


def test_importing_is_no_error():
    assert prints(
        """
        from jax.experimental import pallas as pl
        from jax.experimental.jax2tf import convert
        try:
            pl.pallas_call(lambda x: x)
        except NotImplementedError as error:
            print(error)
        """
    ) == [
        "jax.experimental.pallas.pallas_call is not in Stretto: kernels written for one kind of "
        "device are not part of Stretto: write the function in jax.numpy"
    ]


def test_the_name_grows_with_each_attribute():
    with pytest.raises(NotImplementedError, match=r"^a\.b\.c is not in Stretto: why$"):
        RefusedName("a", "why").b.c(1)
    assert not hasattr(RefusedName("a", "why"), "__array__")
    assert repr(RefusedName("a", "why")) == "<a, which is not in Stretto>"
