"""Examples in chunks: ``vmap(chunk_size=)`` and ``map(batch_size=)`` give what one vmap gives."""

from functools import partial

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

SIZE = 7
CHUNKS = range(1, 9)


def agree(got, want, rtol=1e-6):
    assert st.tree.structure(got) == st.tree.structure(want)
    for g, w in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
        assert g.dtype == w.dtype and g.weak_type == w.weak_type and g.shape == w.shape
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol)


def model(params, x, n):
    """A tree of results; the last two are the same for all examples."""
    h = snp.tanh(params["w"] @ x["a"]) * x["b"]
    return {"h": h, "n": n + 1, "i": (h > 0, params["w"].sum()), "c": 3.0}


def arguments():
    rng = np.random.default_rng(0)
    draw = lambda *shape: snp.asarray(rng.normal(size=shape).astype(np.float32))
    return {"w": draw(2, 3)}, {"a": draw(3, SIZE), "b": draw(SIZE)}, snp.arange(SIZE)


AXES = (None, {"a": -1, "b": 0}, 0)
OUT = {"h": 1, "n": 0, "i": (-1, None), "c": None}


@pytest.mark.parametrize("chunk", CHUNKS)
def test_equal_to_one_vmap(chunk):
    args = arguments()
    want = st.vmap(model, AXES, OUT)(*args)
    f = st.vmap(model, AXES, OUT, chunk_size=chunk)
    agree(f(*args), want)
    agree(st.jit(f)(*args), want)
    agree(st.vmap(model, AXES, chunk_size=chunk)(*args), st.vmap(model, AXES)(*args))


@pytest.mark.parametrize("chunk", [1, 3, 5, 7])
def test_derivatives(chunk):
    params, x, n = arguments()

    def loss(chunk, params, x):
        out = st.vmap(model, AXES, OUT, chunk_size=chunk)(params, x, n)
        return (out["h"] ** 2).sum() * out["i"][1]

    def derivatives(chunk, params, x):
        f = partial(loss, chunk)
        slope = st.grad(f, (0, 1))
        return {
            "grad": slope(params, x),
            "jvp": st.jvp(f, (params, x), (params, x)),
            "second": st.jvp(lambda p: slope(p, x), (params,), (params,)),
            "reverse twice": st.grad(lambda p: (slope(p, x)[1]["a"] ** 2).sum())(params),
        }

    want = derivatives(None, params, x)
    for run in (derivatives, st.jit(derivatives, static_argnums=0)):
        agree(run(chunk, params, x), want, rtol=2e-5)


def test_nested():
    x, y = snp.arange(6.0).reshape(2, 3), snp.arange(20.0).reshape(5, 4)
    f = lambda x, y: snp.sin(x) * y + x

    def table(outer, inner):
        rows = st.vmap(f, (None, 0), chunk_size=inner)
        return st.vmap(st.vmap(rows, (0, None)), (None, 1), chunk_size=outer)

    want = table(None, None)(x[0], y)
    for sizes in ((2, 2), (3, None), (None, 3), (1, 4)):
        agree(table(*sizes)(x[0], y), want)
        agree(st.jit(table(*sizes))(x[0], y), want)
    total = lambda sizes: st.grad(lambda x: table(*sizes)(x, y).sum())
    agree(total((3, 2))(x[0]), total((None, None))(x[0]))
    per_row = lambda sizes: st.vmap(total(sizes), chunk_size=sizes[0])
    agree(per_row((1, 2))(x), per_row((None, None))(x))


def test_random_keys():
    keys = st.random.split(st.random.key(3), SIZE)
    draw = lambda key, x: st.random.uniform(key, (2,)) + x * 0
    x = snp.arange(1.0, SIZE + 1)
    want = st.vmap(draw)(keys, x)
    for chunk in (1, 2, 3, 6):
        np.testing.assert_array_equal(st.vmap(draw, chunk_size=chunk)(keys, x), want)
        np.testing.assert_array_equal(st.jit(st.vmap(draw, chunk_size=chunk))(keys, x), want)


def test_loops_branches_and_custom_rules_inside():
    @st.custom_jvp
    def wave(x):
        return snp.sin(x)

    wave.defjvp(lambda primals, tangents: (wave(*primals), 3.0 * tangents[0]))

    def f(x, n):
        x = st.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 1.5), (0, x))[1]
        x = st.lax.cond(x > 1, snp.sin, lambda x: x * 2, x)
        return wave(st.lax.scan(lambda c, _: (c * 1.25, c), x, None, length=3)[0])

    x, n = snp.linspace(-1.0, 2.0, SIZE), snp.arange(SIZE) % 3
    agree(st.vmap(f, chunk_size=3)(x, n), st.vmap(f)(x, n))
    h = lambda x, chunk: st.vmap(lambda x: wave(x) ** 2, chunk_size=chunk)(x).sum()
    agree(st.grad(h)(x, 3), st.grad(h)(x, None))


def test_jitted_functions_inside():
    f = st.jit(lambda x, y: (x * y, y + 1))
    got = st.vmap(f, (0, None), (0, None), chunk_size=2)(snp.arange(5.0), 2.0)
    agree(got, (2 * snp.arange(5.0), st.vmap(f, (0, None), (0, None))(snp.arange(5.0), 2.0)[1]))


def test_what_no_example_changes_is_done_once():
    seen = []

    def f(x, y):
        seen.append(float(y))  # concrete, as in vmap: what all examples share is not traced
        return x * (snp.sin(y) if y > 0 else y)

    x, y = snp.arange(6.0), snp.asarray(0.5)
    np.testing.assert_allclose(st.vmap(f, (0, None), chunk_size=2)(x, y), x * np.sin(0.5))
    assert seen == [0.5]
    program = st.make_graph(st.vmap(lambda x, y: x * snp.sin(y), (0, None), chunk_size=2))(x, y)
    assert [e.primitive.name for e in program.equations if e.primitive.name in ("sin", "scan")] == [
        "sin",
        "scan",
    ]
    loop = next(e for e in program.equations if e.primitive.name == "scan")
    assert [v.type.shape for v in loop.outputs] == [(3, 2)]


def test_a_result_that_only_a_loop_shows_to_be_the_same_for_all():
    """The scan has one operand that differs, and an output that does not."""

    def f(x, y):
        return st.lax.scan(lambda c, _: ((c[0] * 2, c[1] + 1), None), (x, y), None, length=2)[0]

    x = snp.arange(5.0)
    want = st.vmap(f, (0, None), (0, None))(x, 1.0)
    got = st.vmap(f, (0, None), (0, None), chunk_size=2)(x, 1.0)
    agree(got, want)
    slope = st.grad(lambda y, chunk: f_sum(st.vmap(f, (0, None), (0, None), chunk_size=chunk), y))

    def f_sum(g, y):
        return sum(out.sum() for out in g(x, y))

    agree(slope(1.0, 2), slope(1.0, None))


def test_empty_and_alone():
    f = lambda x: snp.sin(x).sum()
    assert st.vmap(f, chunk_size=3)(snp.ones((0, 2))).shape == (0,)
    agree(st.vmap(f, chunk_size=3)(snp.ones((1, 2))), st.vmap(f)(snp.ones((1, 2))))
    out = st.vmap(lambda: 2.0, axis_size=5, chunk_size=2)()
    np.testing.assert_array_equal(out, np.full(5, 2.0))


def temporary(f, *args):
    """MiB that the compiled function needs beside arguments and results."""
    analysis = st.jit(f).lower(*args).compile().memory_analysis()
    return analysis.temp_size_in_bytes / 2**20


def wide(w, x):
    """An example of 64 numbers makes some of 4,096: 16 KiB."""
    h = snp.tanh(x[:, None] * w)
    return snp.sin(h @ w.T).sum()


@pytest.mark.parametrize("every", ["vmap", "map"])
def test_memory(every):
    w, xs = snp.ones((64, 64)), snp.ones((256, 64))

    def loss(chunk):
        def total(w, xs):
            if every == "vmap":
                return st.vmap(wide, (None, 0), chunk_size=chunk)(w, xs).sum()
            return st.lax.map(partial(wide, w), xs, batch_size=chunk or len(xs)).sum()

        return total

    assert temporary(loss(32), w, xs) < 1.1  # two of 16 KiB for each of 32 examples
    full, eighth = (temporary(st.grad(loss(chunk), (0, 1)), w, xs) for chunk in (None, 32))
    assert full > 3.9  # at least one of 16 KiB an example
    assert eighth < full / 4


# map


@pytest.mark.parametrize("batch", [None, 1, 3, 7])
def test_map_along_axes(batch):
    params, x, n = arguments()
    f = lambda xs: model(*xs)
    want = st.vmap(model, AXES, OUT)(params, x, n)
    g = lambda xs: st.lax.map(f, xs, batch_size=batch, in_axes=AXES, out_axes=OUT)
    agree(g((params, x, n)), want)
    agree(st.jit(g)((params, x, n)), want)
    slope = lambda g: st.grad(lambda w: (g(({"w": w}, x, n))["h"] ** 2).sum())(params["w"])
    agree(slope(g), slope(lambda xs: st.vmap(model, AXES, OUT)(*xs)), rtol=1e-5)


def test_map_keeps_a_batch_alone_where_it_is_asked():
    f = lambda batch: (
        lambda xs: st.lax.map(lambda x: snp.sin(snp.sin(snp.sin(x))), xs, batch_size=batch).sum()
    )
    program = lambda batch: st.make_graph(st.value_and_grad(f(batch)))(snp.ones((6, 2)))
    loops = lambda batch: [
        [v.type.shape for v in e.outputs]
        for e in program(batch).equations
        if e.primitive.name == "scan"
    ]
    assert loops(3) == [[(2, 3, 2)], [(2, 3, 2)]]  # the values, and the slopes
    assert len(loops(None)[0]) == 1 + 3


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: st.vmap(snp.sin, chunk_size=0), "vmap: chunk_size must be a positive integer, go"),
        (lambda: st.vmap(snp.sin, chunk_size=2.0), "vmap: chunk_size must be a positive integer"),
        (lambda: st.vmap(snp.sin, chunk_size=True), "vmap: chunk_size must be a positive integer"),
        (
            lambda: st.vmap(snp.sin, axis_name="i", chunk_size=2),
            "vmap: chunk_size keeps examples apart, while axis_name='i'",
        ),
        (
            lambda: st.vmap(snp.sin, 0, None, chunk_size=2)(snp.ones(4)),
            "vmap: out_axes is None for a result that differs between examples",
        ),
        (
            lambda: st.lax.map(snp.sin, snp.ones(4), batch_size=-1),
            "map: batch_size must be a positive integer, got -1",
        ),
        (
            lambda: st.lax.map(snp.sin, snp.ones(4), in_axes=1),
            "map: in_axes maps axis 1 of xs, which has type float32",
        ),
        (
            lambda: st.lax.map(snp.sin, snp.ones(4), out_axes=2),
            "map: out_axes places axis 2 in a result of 1 axes",
        ),
        (
            lambda: st.lax.map(lambda x: x, (snp.ones(4), 2.0), in_axes=(None, None)),
            "map: mapped sizes must agree; nothing is mapped",
        ),
        (
            lambda: st.lax.map(lambda x: x[0], (snp.ones(4), snp.ones((2, 3))), in_axes=(0, 1)),
            r"map: mapped sizes must agree; xs\[0\] has 4 along axis 0, xs\[1\] has 3 along axis 1",
        ),
        (
            lambda: st.lax.map(lambda x: x[0], (snp.ones(4), 1.0), in_axes=(0, 0, 0)),
            "map: in_axes must be a prefix of the tree it describes",
        ),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_condition_on_an_example_is_refused():
    with pytest.raises(st.errors.TracedValueError, match="the argument x"):
        st.vmap(lambda x: x if x > 0 else -x, chunk_size=2)(snp.ones(4))


@pytest.mark.parametrize(("settings", "name"), [({}, "example"), ({"batch_size": 2}, "chunk")])
def test_programs_of_examples_and_of_chunks_say_what_they_are_of(settings, name):
    f = lambda x: st.lax.map(snp.sin, x, **settings)
    text = str(st.make_graph(f)(np.ones(SIZE, np.float32)))
    assert f"{{ {name}(" in text
