"""Functions of ``jax.tree_util``."""

from tests.compat.jax.running import prints


def test_trees_are_turned_inside_out_whatever_static_data_says_of_children():
    code = """
    class Box:
        def __init__(self, **things):
            self.things = things

    jax.tree_util.register_pytree_node(
        Box,
        lambda b: (tuple(b.things.values()), jax.tree.structure(b.things)),
        lambda d, leaves: Box(**dict(zip("ab", leaves))),
    )
    outer, inner = jax.tree.structure(Box(a=1, b=2)), jax.tree.structure([1, 2])
    print([b.things for b in jax.tree.transpose(outer, inner, Box(a=[3, 4], b=[5, 6]))])
    try:
        jax.tree.transpose(outer, inner, Box(a=[3, 4], b=[5]))
    except TypeError as error:
        print(str(error)[:35])
    """
    assert prints(code) == [
        "[{'a': 3, 'b': 5}, {'a': 4, 'b': 6}]",
        "tree_transpose: expected the struct",
    ]
