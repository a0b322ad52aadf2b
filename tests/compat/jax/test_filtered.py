"""What libraries ask for whose transformations filter trees: static leaves, rules, primitives.

Each is written as such a library would write it, in a process where Stretto stands for JAX.
"""

from tests.compat.jax.running import prints


def test_tangents_of_some_leaves():
    """A jvp where leaves without tangents, and such as are no arrays, are closed over."""
    assert prints(
        """
        def filtered_jvp(fun, primals, tangents):
            leaves, treedef = jax.tree.flatten(primals)
            given = jax.tree.leaves(tangents, is_leaf=lambda x: x is None)
            moving = [i for i, t in enumerate(given) if t is not None]
            static = []

            def of_moving(*xs):
                full = list(leaves)
                for i, x in zip(moving, xs):
                    full[i] = x
                out = fun(*jax.tree.unflatten(treedef, full))
                arrays, others = [], []
                for leaf in jax.tree.leaves(out):
                    (arrays if isinstance(leaf, jax.Array) else others).append(leaf)
                static.append(others)
                return arrays

            outs = jax.jvp(of_moving, [leaves[i] for i in moving], [given[i] for i in moving])
            return *outs, static[-1]

        marker = object()
        fun = lambda x, n, name: (x ** n, marker)
        args = (jnp.array(3.0), 2, "name")
        out, tangent, static = filtered_jvp(fun, args, (jnp.array(1.0), None, None))
        print(out[0], tangent[0], static[0] is marker)
        out, tangent = jax.jit(
            lambda x: filtered_jvp(fun, (x, 2, "name"), (x, None, None))[:2]
        )(3.0)
        print(out[0], tangent[0])
        """
    ) == ["9.0 6.0 True", "9.0 18.0"]


def test_symbolic_zeros_of_rules():
    assert prints(
        """
        from jax.custom_derivatives import SymbolicZero, zero_from_primal

        @jax.custom_jvp
        def f(x, y):
            return x * y, y

        def rule(primals, tangents):
            (x, y), (dx, dy) = primals, tangents
            print(isinstance(dx, SymbolicZero), isinstance(dy, SymbolicZero), dy.aval)
            out = f(x, y)
            return out, (dx * y, zero_from_primal(out[1], symbolic_zeros=True))

        f.defjvp(rule, symbolic_zeros=True)
        print(jax.jvp(lambda x: f(x, 2.0), (3.0,), (1.0,))[1][0])
        """
    ) == ["False True float32[]", "2.0"]


def test_rules_with_keywords():
    assert prints(
        """
        f = jax.custom_jvp(lambda x, y: x * y)
        f.defjvp(lambda p, t: (f(*p), 7.0 * t[0]))
        print(jax.grad(lambda x: f(x, y=2.0))(3.0))
        g = jax.custom_vjp(lambda x, y: x * y)
        g.defvjp(fwd=lambda x, y: (x * y, y), bwd=lambda y, ct: (5.0 * ct * y, ct))
        print(jax.grad(lambda x: g(x, y=2.0))(3.0), jax.jit(jax.grad(lambda y: g(y=y, x=1.0)))(3.0))
        """
    ) == ["7.0", "10.0 1.0"]


def test_forward_passes_that_are_left_out():
    """With ``optimize_remat`` the derivatives are the same, also where residuals are not wanted."""
    assert prints(
        """
        h = jax.custom_vjp(lambda x: x ** 2)
        h.defvjp(lambda x: (x ** 2, x), lambda x, ct: (3 * x * ct,), optimize_remat=True)
        print(jax.grad(h)(2.0), jax.jit(jax.grad(jax.checkpoint(h)))(2.0))
        print(jax.vmap(jax.grad(h))(jnp.arange(3.0)), jax.checkpoint(h)(3.0))
        """
    ) == ["6.0 6.0", "[0. 3. 6.] 9.0"]


def test_primitives_that_look_across_examples():
    """An operation whose vmap rule takes the examples together, and maps nothing."""
    assert prints(
        """
        from jax.interpreters import batching, mlir
        any_p = jax.extend.core.Primitive("any_example")
        impl = lambda x: jnp.any(x)
        any_p.def_impl(impl)
        any_p.def_abstract_eval(lambda x: jax.core.ShapedArray((), jnp.bool_))
        batching.primitive_batchers[any_p] = lambda xs, axes: (any_p.bind(*xs), None)
        mlir.register_lowering(any_p, mlir.lower_fun(impl, multiple_results=False))

        def count(x):
            unfinished = lambda c: any_p.bind(c[0] < x)
            return jax.lax.while_loop(unfinished, lambda c: (c[0] + 1, c[1] + 1), (0, 0))[1]

        x = jnp.array([1, 4, 2])
        print(count(3), jax.vmap(count)(x), jax.jit(jax.vmap(count))(x))
        print(jax.vmap(any_p.bind, out_axes=None)(jnp.array([False, True])))
        """
    ) == ["3 [4 4 4] [4 4 4]", "True"]


def test_functions_that_stay_whole():
    """A primitive that calls its function by Python, when the program runs."""
    assert prints(
        """
        from jax.interpreters import ad, batching, mlir
        traced = []

        def work(x):
            traced.append(1)
            return 2 * jnp.sin(x)

        compiled = jax.jit(work)
        whole_p = jax.extend.core.Primitive("whole")
        whole_p.multiple_results = True
        whole_p.def_impl(lambda x: [compiled(x)])
        whole_p.def_abstract_eval(lambda x: [jax.core.ShapedArray(x.shape, x.dtype)])

        def lowering(ctx, x):
            out, _, keepalive = mlir.emit_python_callback(
                ctx, lambda x: (compiled(x),), None, [x], ctx.avals_in, ctx.avals_out,
                has_side_effect=False)
            ctx.module_context.add_keepalive(keepalive)
            return out

        mlir.register_lowering(whole_p, lowering)
        batching.primitive_batchers[whole_p] = lambda xs, axes: (whole_p.bind(*xs), [axes[0]])
        f = jax.jit(lambda x: whole_p.bind(x)[0] + whole_p.bind(x + 1)[0])
        print(f(0.0), f(1.0), len(traced))
        print(jax.jit(jax.vmap(lambda x: whole_p.bind(x)[0]))(jnp.zeros(2)))
        """
    ) == ["1.6829419 3.5015368 1", "[0. 0.]"]


def test_leaves_in_files():
    assert prints(
        """
        import io
        halves = jnp.array([1.5, 2.5], jnp.bfloat16)
        tree = {"array": halves, "number": 1e-8, "host": np.float64(1e-8)}
        file = io.BytesIO()
        for leaf in jax.tree.leaves(tree):
            jnp.save(file, leaf)
        file.seek(0)
        back = [np.load(file) for _ in range(3)]
        print(back[0].view(jax.dtypes.bfloat16).tolist(), back[1] == 1e-8, back[2].dtype)
        print(type(jax.dtypes.bfloat16(1)).__module__, jnp.array(jax.dtypes.bfloat16(1)).dtype)
        """
    ) == ["[1.5, 2.5] True float64", "ml_dtypes bfloat16"]


def test_static_sizes_under_vmap():
    """Adaptive pooling: sizes that are numbers while an example is mapped."""
    assert prints(
        """
        from functools import partial

        @partial(jax.jit, static_argnums=1)
        def pooled(x, size):
            edges = [(i * x.shape[0]) // size for i in range(size + 1)]
            return jnp.stack([x[a:b].mean() for a, b in zip(edges, edges[1:])])

        print(jax.vmap(pooled, in_axes=(0, None))(jnp.arange(8.0).reshape(2, 4), 2))
        """
    ) == ["[[0.5 2.5]", " [4.5 6.5]]"]


def test_functions_as_trees():
    assert prints(
        """
        from jax.tree_util import Partial
        scaled = Partial(lambda a, x: a * x, jnp.array(2.0))
        print(jax.jit(lambda p, x: p(x))(scaled, 3.0), jax.grad(lambda p: p(3.0))(scaled).args[0])
        print(jax.vmap(lambda p, x: p(x), (None, 0))(scaled, jnp.arange(2.0)))
        """
    ) == ["6.0 3.0", "[0. 2.]"]


def test_how_hard_to_compile():
    assert prints(
        """
        f = jax.jit(lambda x: x + 1, compiler_options={"optimization_level": 1})
        print(f(1.0), jax.jit(jnp.sin).lower(0.0).compile({"memory_fitting_level": 1})(0.0))
        """
    ) == ["2.0 0.0"]
