"""The rule of Leibniz."""

from stretto._engine.ops.leibniz import leibniz


def test_sums_over_pairs_of_orders():
    x, y = [2.0, 3.0, 5.0], [7.0, 11.0, 13.0]
    product = lambda a, b: a * b
    assert leibniz(product, 0, x.__getitem__, y.__getitem__) == 14
    # x y″ + 2 x′ y′ + x″ y
    assert leibniz(product, 2, x.__getitem__, y.__getitem__) == 2 * 13 + 2 * 3 * 11 + 5 * 7
    assert leibniz(product, 2, x.__getitem__, y.__getitem__, most=1) == 2 * 13 + 2 * 3 * 11


def test_zeros_are_left_out():
    x = lambda k: 2.0 if k == 0 else None
    y = lambda k: None if k == 0 else 3.0
    assert leibniz(lambda a, b: a * b, 1, x, y) == 6
    assert leibniz(lambda a, b: a * b, 0, x, y) is None
