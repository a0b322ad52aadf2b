"""Functions with transformations around them."""

import pytest

from stretto.compat.jax.util import (
    StoreException,
    transformation,
    transformation2,
    transformation_with_aux,
    transformation_with_aux2,
    wrap_init,
)


def test_generators():
    @transformation
    def scaled(factor, *args):
        out = yield tuple(factor * a for a in args), {}
        yield out + 1

    @transformation_with_aux
    def counted(*args):
        out = yield args, {}
        yield out, len(args)

    fun, count = counted(scaled(wrap_init(lambda x, y: x + y), 10))
    with pytest.raises(StoreException):
        count()
    assert fun.call_wrapped(1, 2) == 31 and count() == 2
    assert fun.__name__ == "<lambda>"


def test_functions():
    @transformation2
    def scaled(call, factor, *args):
        return call(*(factor * a for a in args))

    @transformation_with_aux2
    def counted(call, store, *args):
        store.store(len(args))
        return call(*args)

    fun, count = counted(scaled(wrap_init(lambda x, y: x + y), 10))
    assert fun.call_wrapped(1, 2) == 30 and count() == 2
    plain = wrap_init(max)
    assert scaled(plain, 2) == scaled(plain, 2) != scaled(plain, 3)
    assert hash(scaled(plain, 2)) == hash(scaled(plain, 2))
