"""Modules whose sizes vary: how sizes are found, and what is refused."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import ExportError
from stretto._engine.core.size_guards import Guard, varying_sizes
from stretto._engine.core.sizes import greater, size_variable
from stretto._engine.lowering.polymorphic import lower_for_file
from stretto._engine.xla import artifacts, pjrt

B, C = size_variable("b"), size_variable("c")


def functions_of(fun, *shapes, guards=()):
    with varying_sizes():
        program = st.make_graph(fun)(*[st.ShapeDtypeStruct(s, "float32") for s in shapes])
    text = lower_for_file(program, (), ("cpu",), guards=guards)
    return artifacts.functions_of_artifact(pjrt.portable_artifact(text, "1.13.7"))


def at(functions, inputs, outputs):
    type = lambda shape: "tensor<" + "".join([f"{n}x" for n in shape]) + "f32>"
    return artifacts.functions_at(functions, [*map(type, inputs)], [*map(type, outputs)])


def test_variables_are_read_off_sums_and_products():
    functions = functions_of(lambda x, y: snp.ones((B, C)), (2 * B + C,), (C,))
    assert at(functions, [(11,), (5,)], [(3, 5)])
    with pytest.raises(ValueError, match=r"must be 2\*b\+c"):
        at(functions, [(12,), (5,)], [(3, 5)])


def test_a_quotient_is_rounded_down_also_below_zero():
    size = (B - 5) // 2 + 10
    functions = functions_of(lambda x: snp.ones((size,)), (B,))
    for n in (1, 2, 4, 5, 6, 7):
        assert at(functions, [(n,)], [((n - 5) // 2 + 10,)])


def test_what_is_positive_alone_is_zero_below():
    functions = functions_of(lambda x: snp.ones((greater(B - 5, 0) + 2,)), (B,))
    for n in (1, 5, 6, 9):
        assert at(functions, [(n,)], [(max(n - 5, 0) + 2,)])


def test_guards_are_asserted():
    functions = functions_of(snp.sin, (B,), guards=[Guard(B, 4, True)])
    assert at(functions, [(3,)], [(3,)])
    with pytest.raises(ValueError, match=r"exported for b < 4"):
        at(functions, [(4,)], [(4,)])


@pytest.mark.parametrize("shapes", [((B * B,),), ((C,), (B * C,)), ((B + C,),), ((B // 2,),),
                                    ((C,), (C - B,)), ((B + B // 2,),)])  # fmt: skip
def test_sizes_that_no_shape_gives_are_refused(shapes):
    with pytest.raises(ExportError, match=r"what the size [bc] is does not follow"):
        functions_of(lambda *xs: snp.sin(xs[0]), *shapes)


def test_what_numbers_alone_can_say_is_refused():
    with pytest.raises(ExportError, match="where StableHLO has numbers alone"):
        functions_of(snp.fft.fft, (B,))
    with pytest.raises(
        ExportError, match="lapack_sgetrf_ffi is called for arrays whose sizes vary"
    ):
        functions_of(snp.linalg.inv, (B, 3, 3))


@pytest.mark.parametrize(("most", "said"), [((1 << 31) - 1, True), (1 << 31, False)])
def test_bounds_beyond_all_sizes_are_not_asserted(most, said):
    with varying_sizes():
        x = st.ShapeDtypeStruct((size_variable("b", 1, most),), "float32")
        text = lower_for_file(st.make_graph(snp.sin)(x), (), ("cpu",))
    assert (f"{most} or less" in text) == said and "1 or more" in text
    with varying_sizes():
        program = st.make_graph(snp.sin)(st.ShapeDtypeStruct((B,), "float32"))
    for guard in (Guard(B, most, True), Guard(B - most, 0, True)):
        text = lower_for_file(program, (), ("cpu",), guards=[guard])
        assert ("exported for b" in text) == said


@pytest.mark.parametrize(("n", "refused"), [(2, "3 or more"), (3, ""), (8, ""), (9, "8 or less")])
def test_bounds_are_asserted(n, refused):
    functions = functions_of(snp.sin, (size_variable("b", 3, 8),))
    if not refused:
        assert at(functions, [(n,)], [(n,)])
    else:
        with pytest.raises(ValueError, match=f"b must be {refused}, got b = {n}"):
            at(functions, [(n,)], [(n,)])


@pytest.mark.parametrize(
    ("guard", "held", "broken", "words"),
    [
        (Guard(B, 4, True), 3, 4, "b < 4"),
        (Guard(B, 4, False), 4, 3, "b >= 4"),
        (Guard(2 * B + 1, 8, True), 3, 4, r"2\*b\+1 < 8"),
    ],
)
def test_guards_hold_on_their_side(guard, held, broken, words):
    functions = functions_of(snp.sin, (B,), guards=[guard])
    assert at(functions, [(held,)], [(held,)])
    with pytest.raises(ValueError, match=f"exported for {words}"):
        at(functions, [(broken,)], [(broken,)])


@pytest.mark.parametrize(
    ("shapes", "right", "wrong", "words"),
    [
        (((B,), (B,)), [(3,), (3,)], [(3,), (4,)], "the size of axis 0 of an argument must be b"),
        (((B, 2), (2, B)), [(3, 2), (2, 3)], [(3, 2), (2, 4)], "axis 1 of an argument must be b"),
        (((2 * B,),), [(6,)], [(7,)], r"must be 2\*b"),
        (((3 * B + 2,),), [(11,)], [(12,)], r"must be 3\*b\+2"),
        (((B,), (C,), (B * C,)), [(3,), (2,), (6,)], [(3,), (2,), (7,)], r"must be b\*c"),
        (((B, B + C, C + 4),), [(3, 5, 6)], [(3, 5, 7)], r"must be c\+4"),
    ],
)  # fmt: skip
def test_sizes_of_several_axes_must_agree(shapes, right, wrong, words):
    functions = functions_of(lambda *xs: snp.ones((B,)), *shapes)
    assert at(functions, right, [(3,)])
    with pytest.raises(ValueError, match=words):
        at(functions, wrong, [(3,)])


@pytest.mark.parametrize(
    ("f", "shape"),
    [
        (lambda x: x[1:], lambda n: (n - 1,)),
        (lambda x: x[::2], lambda n: (-(-n // 2),)),
        (lambda x: x[::-1], lambda n: (n,)),
        (lambda x: snp.concatenate([x, x[:3]]), lambda n: (n + 3,)),
        (lambda x: snp.pad(x, (1, 2)), lambda n: (n + 3,)),
        (lambda x: x[:, None] * x, lambda n: (n, n)),
        (lambda x: (x[:, None] * snp.ones(4)).reshape(-1), lambda n: (4 * n,)),
        (lambda x: snp.arange(x.shape[0]) + x, lambda n: (n,)),
        (lambda x: snp.full((2, x.shape[0]), 3.0), lambda n: (2, n)),
        (lambda x: st.lax.slice(snp.broadcast_to(x[0], (9,)), (0,), x.shape), lambda n: (n,)),
        (lambda x: x[1:3], lambda n: (2,)),
    ],
)
def test_shapes_follow_from_those_of_the_arguments(f, shape):
    functions = functions_of(f, (size_variable("b", 4, 9),))
    for n in (4, 5, 9):
        assert at(functions, [(n,)], [shape(n)])


def test_what_a_module_says_of_itself():
    """Whoever reads it refines shapes, and puts the platform in, where it says so."""

    def said(shape, *platforms):
        with varying_sizes():
            program = st.make_graph(snp.sin)(st.ShapeDtypeStruct(shape, "float32"))
        text = lower_for_file(program, (), platforms)
        return "attributes {jax.uses_shape_polymorphism = true} {" in text

    assert not said((3,), "cpu")
    assert said((3,), "cpu", "tpu") and said((B,), "cpu") and said((B,), "cpu", "tpu")


@pytest.mark.parametrize(
    ("f", "operation"),
    [
        (lambda x: x[:, np.array([2, 0])], "dynamic_gather"),
        (lambda x: x[np.array([2, 0])], "gather"),
    ],
)
def test_windows_of_fixed_sizes_are_read_as_elsewhere(f, operation):
    with varying_sizes():
        program = st.make_graph(f)(st.ShapeDtypeStruct((B, 4), "float32"))
    text = lower_for_file(program, (), ("cpu",))
    assert f'"stablehlo.{operation}"' in text


def test_a_size_of_no_argument_is_refused():
    with pytest.raises(ExportError, match="no argument has an axis of the size c"):
        functions_of(lambda x: snp.ones((C,)), (B,))


def test_sizes_are_read_and_computed_once():
    with varying_sizes():
        program = st.make_graph(lambda x: (snp.ones((2 * B, 3)), snp.zeros((2 * B, 3))))(
            st.ShapeDtypeStruct((B,), "float32")
        )
    text = lower_for_file(program, (), ("cpu",))
    counts = [text.count(f"stablehlo.{op}") for op in ("get_dimension_size", "multiply", "concat")]
    assert counts == [1, 1, 1]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: snp.pad(x, ((0, x.shape[0]), (1, 0))),
        lambda x: snp.pad(x, ((x.shape[0] - 1, 2), (0, 0)), constant_values=3.0),
        lambda x: st.lax.pad(x, 1.0, [(-1, x.shape[0], 0), (0, 1, 2)]),
        lambda x: [st.lax.dynamic_slice(x, (i, 1), (x.shape[0] - 1, 2)) for i in (-1, 0, 1, 9)],
        lambda x: st.lax.dynamic_slice(x, (-2, 0), (1, 2)),
        lambda x: st.lax.dynamic_slice(x[:, 0], (1,), (x.shape[0] // 2,)),
        lambda x: st.lax.dynamic_update_slice(x, x[1:, :2] + 1, (7, -2)),
        lambda x: x[:, np.array([2, 0, 2])],
        lambda x: x[np.array([2, 0])],
        lambda x: snp.take(x, np.array([[1], [0]]), axis=1),
    ],
)
def test_parts_whose_sizes_vary(f):
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    file = st.export.stablehlo(f, x, dynamic_axes=({0: st.dynamic_size("n", least=2)},))
    for n in (3, 4):
        got, want = st.tree.leaves(file(x[:n])), st.tree.leaves(f(snp.asarray(x[:n])))
        for one, other in zip(got, want, strict=True):
            np.testing.assert_array_equal(one, other)
