"""Operations of the table with rules of their own: implicit functions, named axes, memory."""

from __future__ import annotations

from tests.property.control import DEEPEST, apply_body
from tests.property.programs import Var
from tests.property.writer import Skip, Writer, operation

__all__: list[str] = []


@operation("custom_jvp", 0.4)
def _custom_jvp(w: Writer) -> None:
    if "reverse" in w.ways:  # its rule takes a forward derivative
        raise Skip
    setup = ["own_BODY = st.custom_jvp(BODY)", "own_BODY.defjvp(lambda p, t: st.jvp(BODY, p, t))"]
    apply_body(w, "own_BODY", closed=True, setup=setup)


@operation("custom_vjp", 3.0, way="reverse")
def _custom_vjp(w: Writer) -> None:
    setup = [
        "own_BODY = st.custom_vjp(BODY)",
        "own_BODY.defvjp(lambda *x: (BODY(*x), x), lambda x, ct: st.vjp(BODY, *x)[1](ct))",
    ]
    apply_body(w, "own_BODY", closed=True, setup=setup)


@operation("custom_gradient", 1.0, way="reverse")
def _custom_gradient(w: Writer) -> None:
    apply_body(w, "custom_gradient(lambda *x: st.vjp(BODY, *x))", closed=True)


@operation("sequential_vmap", 0.3)
def _sequential_vmap(w: Writer) -> None:
    apply_body(w, "sequential_vmap(BODY)", closed=True)


@operation("custom_vmap", 0.3)
def _custom_vmap(w: Writer) -> None:
    """A rule that does what vmap would, and says that all results are mapped."""
    rule = (
        "own_BODY.def_vmap(lambda n, mapped, *x: (lambda ys: (ys, (True,) * len(ys)))"
        "(st.vmap(BODY, [0 if m else None for m in mapped], axis_size=n)(*x)))"
    )
    setup = ["own_BODY = st.custom_vmap(BODY)", rule]
    apply_body(w, "own_BODY", closed=True, setup=setup)


@operation("primitive", 0.3)
def _primitive(w: Writer) -> None:
    """Rules that do what would be done without them; half of them derived."""
    rules = [
        "own_BODY.def_jvp(lambda p, t: st.jvp(BODY, p, t))",
        "own_BODY.def_vmap(lambda n, mapped, *x: (lambda ys: (ys, (True,) * len(ys)))"
        "(st.vmap(BODY, [0 if m else None for m in mapped], axis_size=n)(*x)))",
    ]
    given = [w.rng.random() < 0.5 and "reverse" not in w.ways, w.rng.random() < 0.5]
    every = "('jvp', 'transpose', 'vmap')"
    setup = [f"own_BODY = st.primitive(BODY, derive={every})"]
    setup += [rule for rule, g in zip(rules, given, strict=True) if g]
    apply_body(w, "own_BODY", closed=True, setup=setup)


@operation("pure_callback", 0.3)
def _pure_callback(w: Writer) -> None:
    """NumPy's sine, with its derivative beside."""
    v = w.float()
    own = w.name("host")
    method = w.rng.choice(["sequential", "expand_dims", "broadcast_all"])
    sine = "lambda a: np.sin(np.asarray(a))"
    setup = [
        f"{own} = st.custom_jvp(lambda x: st.pure_callback("
        f"{sine}, st.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method={method!r}))",
        f"{own}.defjvp(lambda p, t: ({own}(*p), snp.cos(p[0]) * t[0]))",
    ]
    out = Var(w.name("v"), "float", v.shape)
    w.statement(f"{own}({{0}})", [v], [out], setup=setup)


@operation("checkpoint", 0.8)
def _checkpoint(w: Writer) -> None:
    policy = w.rng.choice([
        "None",
        "st.checkpoint_policies.everything_saveable",
        "st.checkpoint_policies.dots_saveable",
        "st.checkpoint_policies.save_only_these_names('kept')",
    ])  # fmt: skip
    apply_body(w, f"st.checkpoint(BODY, policy={policy})")


@operation("checkpoint_name", 0.3)
def _checkpoint_name(w: Writer) -> None:
    v = w.inexact()
    text = "st.checkpoint_name({0}, 'kept')"
    w.emit(text, [v], v.shape, v.low, v.high, v.kind)


@operation("optimization_barrier", 0.2)
def _optimization_barrier(w: Writer) -> None:
    v = w.inexact()
    w.emit("lax.optimization_barrier({0})", [v], v.shape, v.low, v.high, v.kind)


@operation("linear_call", 0.3)
def _linear_call(w: Writer) -> None:
    r, x = w.float(-2, 2), w.float(-4, 4)
    if r.shape not in ((), x.shape):
        raise Skip
    text = "st.lax.linear_call(lambda r, x: r * x, lambda r, ct: r * ct, {0}, {1})"
    w.emit(text, [r, x], x.shape, -8, 8)


@operation("associative_scan", 0.4)
def _associative_scan(w: Writer) -> None:
    """The running composition of x ↦ a x + b."""
    a = w.float(-1, 1, fits=lambda v: v.ndim > 0)
    b = w.fit("float", a.shape, -1, 1)
    combine = "lambda f, g: (g[0] * f[0], g[0] * f[1] + g[1])"
    axis = w.axis(a)
    options = f"axis={axis}, reverse={w.rng.random() < 0.4}"
    outs = [w.fresh(a), Var(w.name("v"), "float", a.shape, -a.shape[axis], a.shape[axis])]
    w.statement(f"lax.associative_scan({combine}, ({{0}}, {{1}}), {options})", [a, b], outs)


@operation("custom_root", 0.4)
def _custom_root(w: Writer) -> None:
    """The x for which x + 0.3 sin(x y) is v, element by element, by contraction."""
    v, y = w.float(-2, 2), w.float(-1, 1, fits=lambda u: not u.ndim)
    text = (
        "lax.custom_root(lambda x: x + 0.3 * snp.sin(x * {1}) - {0}, snp.zeros_like({0}), "
        "lambda f, x: lax.fori_loop(0, 40, lambda _, x: x - f(x), x), "
        "lambda g, z: z / g(snp.ones_like(z)))"
    )
    w.emit(text, [v, y], v.shape, -2.3, 2.3)


@operation("custom_linear_solve", 0.4)
def _custom_linear_solve(w: Writer) -> None:
    """The x for which 3 x + c · roll(x) is b, with |c| < 1, by Jacobi's iteration."""
    b = w.float(-2, 2, fits=lambda u: u.ndim > 0)
    c = w.float(-0.9, 0.9, fits=lambda u: u.shape in ((), b.shape))
    axis = w.axis(b)
    solve = "lambda mv, b: lax.fori_loop(0, 40, lambda _, x: x + (b - mv(x)) / 3, b)"
    matvec = f"lambda x: 3 * x + {{1}} * snp.roll(x, 1, axis={axis})"
    text = f"lax.custom_linear_solve({matvec}, {{0}}, {solve}, transpose_solve={solve})"
    w.emit(text, [b, c], b.shape, -1, 1)


# Named axes: a vmap inside the program, whose body talks across its examples.

COLLECTIVES = {
    # Each text, and the shape of what it gives for one example, of n.
    "psum": ("lax.psum({0}, 'NAME')", lambda n, shape: shape),
    "pmean": ("lax.pmean({0}, 'NAME')", lambda n, shape: shape),
    "pmax": ("lax.pmax({0}, 'NAME')", lambda n, shape: shape),
    "pmin": ("lax.pmin({0}, 'NAME')", lambda n, shape: shape),
    "ppermute": ("lax.ppermute({0}, 'NAME', PAIRS)", lambda n, shape: shape),
    "axis_index": ("{0} * lax.axis_index('NAME')", lambda n, shape: shape),
    "all_gather": ("lax.all_gather({0}, 'NAME')", lambda n, shape: (n, *shape)),
    "all_to_all": (
        "lax.all_to_all(snp.stack([{0}] * SIZE), 'NAME', 0, 0)",
        lambda n, shape: (n, *shape),
    ),
    "psum_scatter": ("lax.psum_scatter(snp.stack([{0}] * SIZE), 'NAME')", lambda n, shape: shape),
}


def _collective(kind: str) -> None:
    text, shape_of = COLLECTIVES[kind]

    def write(w: Writer) -> None:
        if w.depth >= DEEPEST:
            raise Skip
        x = w.inexact(4, fits=lambda v: v.ndim > 0)
        if x.kind == "complex" and kind in ("pmax", "pmin"):
            raise Skip
        axis, name = w.axis(x), w.name("axis")
        size = x.shape[axis]
        param = w.param(x, x.shape[:axis] + x.shape[axis + 1 :])
        inside = w.inner([param])
        inside.current = w.current
        inside.grow(w.rng.randint(0, 1))
        v = inside.any_of(lambda v: v.kind == x.kind and v.size <= 9 and v.ndim < 3)
        v = inside.within(v, -2, 2)
        pairs = str([(i, (i + 1) % size) for i in range(size)])
        expression = text.replace("NAME", name).replace("SIZE", str(size)).replace("PAIRS", pairs)
        b = 2.0 * size
        v = inside.emit(expression, [v], shape_of(size, v.shape), -b, b, v.kind)
        inside.grow(w.rng.randint(0, 1))
        able = [u for u in inside.scope if size * u.size <= 27 and u.ndim < 3]
        result = v if v in able else w.rng.choice(able)
        body = inside.block("body", [param], [result], returns="{0}")
        call = f"st.vmap({body.name}, in_axes={axis}, axis_name='{name}')({{0}})"
        w.statement(call, [x], [w.fresh(result, (size, *result.shape))], [body])

    operation(kind, 0.12)(write)


for _kind in COLLECTIVES:
    _collective(_kind)
