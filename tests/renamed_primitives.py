# ruff: noqa: E402 (classes are renamed before what defines them is imported)
"""What the package decides, said by a process of its own in which primitives may have other names.

``python -m tests.renamed_primitives [other]`` prints the decisions as JSON; with ``other`` every
primitive class is renamed as it is defined, and the names are put back in what is printed.
"""

from __future__ import annotations

import codecs
import importlib
import importlib.util
import json
import re
import sys
import types
from typing import Any


def _rename() -> None:
    """Let each primitive class be made under another name, as if it had been written so."""
    spec = importlib.util.find_spec("stretto")
    assert spec is not None
    assert spec.submodule_search_locations
    # Under a bare package in its place ``core`` alone is imported, before there is any primitive.
    sys.modules["stretto"] = bare = types.ModuleType("stretto")
    bare.__path__ = list(spec.submodule_search_locations)
    primitive = importlib.import_module("stretto._engine.core.primitive").Primitive
    del sys.modules["stretto"]
    made = vars(primitive)["__init_subclass__"].__func__

    def renamed(cls: Any, abstract: bool = False, **kwargs: Any) -> None:
        made(cls, abstract, **kwargs)
        cls.__name__ = cls.__qualname__ = _other(cls.__name__)
        if not abstract:
            cls.name = _other(cls.name)

    primitive.__init_subclass__ = classmethod(renamed)


def _other(name: str) -> str:
    return f"zz_{codecs.encode(name, 'rot13')}_zz"


def _put_back(text: str) -> str:
    return re.sub(r"zz_(.*?)_zz", lambda found: codecs.encode(found[1], "rot13"), text)


if "other" in sys.argv[1:]:
    _rename()

import ml_dtypes
import numpy as np

import stretto as st
import stretto.numpy as snp
import stretto.special
from stretto import lax, nn
from stretto._engine.core.primitive import PRIMITIVES, Kernel, Primitive
from stretto._engine.core.types import array_type
from stretto._engine.eager.interpreted import interpretable
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.passes.prepare import prepare
from stretto._engine.passes.rolling.roll_loops import roll_loops


def _programs() -> dict[str, tuple[Any, ...]]:
    """Functions and what they are called with."""
    x, w = snp.ones(8), snp.ones((8, 8))

    def again(step: Any, copies: int) -> Any:
        def f(x: Any, *more: Any) -> Any:
            for i in range(copies):
                x = step(x, i, *more)
            return x

        return f

    def constant(x: Any, i: int) -> Any:
        return snp.sin(x) + lax.iota(np.float32, 8) * i

    def mapped(x: Any, i: int, ws: Any) -> Any:
        return st.vmap(again(lambda y, i, w: snp.tanh(y @ w), 6))(x, ws)

    def compared(x: Any, y: Any) -> Any:
        functions = (snp.equal, snp.not_equal, snp.less, snp.less_equal, snp.greater)
        return [f(x, y) for f in (*functions, snp.greater_equal)]

    def convolved(x: Any, kernel: Any) -> Any:
        return nn.relu(lax.conv_general_dilated(x, kernel, (1,), "SAME"))

    return {
        "light": (again(lambda x, i: x * x + 1.5, 100), x),
        "dear": (again(lambda x, i: snp.log1p(snp.tanh(x)), 60), x),
        "barely dear": (again(lambda x, i: snp.logaddexp(x, snp.arctan(x)), 10), x),
        "once": (again(lambda x, i: snp.cumsum(x) / 8 + x[snp.array([1, 2] * 4)], 24), x),
        "once, long": (again(lambda x, i: lax.cummax(lax.cumlogsumexp(x)), 120), x),
        "written": (again(lambda x, i: snp.sort(x) * 0.5, 16), x),
        "sums": (again(lambda x, i: x - snp.sum(x * x), 8), x),
        "sliced": (again(lambda x, i, w: snp.tanh(w[i % 8] + x), 16), x, w),
        "products": (again(lambda x, i, w: snp.tanh(w @ x), 40), x, w),
        "constants": (again(constant, 12), x),
        "mapped calls": (again(mapped, 5), snp.ones((4, 16, 16)), snp.ones((4, 16, 16))),
        "mapped": (
            lambda ws, x: st.vmap(lambda w: snp.tanh(x @ w))(ws),
            snp.ones((4, 16, 16)),
            snp.ones((16, 16)),
        ),
        "mapped kernels": (
            st.vmap(convolved, in_axes=(None, 0)),
            snp.ones((2, 3, 16)),
            snp.ones((5, 4, 3, 3)),
        ),
        "compared": (compared, x, x + 1),
        "checkpointed": (
            st.grad(
                st.checkpoint(
                    lambda w: snp.sum(snp.tanh(w @ w)), policy=st.checkpoint_policies.dots_saveable
                )
            ),
            w,
        ),
        "folded": (lambda x: x + snp.log(snp.full(8, 2.0)) * snp.floor(snp.full(8, 2.5)), x),
        "barriers": (lambda x: lax.optimization_barrier((snp.sin(x), snp.sin(x))), x),
    }


def _decisions() -> dict[str, Any]:
    found: dict[str, Any] = {}
    dtypes = [np.dtype(d) for d in ("f2", "f4", "f8", "c8", ml_dtypes.bfloat16)]
    for cls in [p for p in PRIMITIVES if p.__module__.startswith("stretto.")]:
        key = f"{cls.__module__} {cls.name}"
        assert key not in found
        traits: dict[str, Any] = dict(_traits(cls))
        if issubclass(cls, Elementwise):
            each = object.__new__(cls)
            types = [array_type((1 << n,), d) for d in dtypes for n in range(14, 24)]
            traits["compiled"] = [int(each.compiled((t, t, t))) for t in types]
        found[key] = traits
    with st.config(disk_cache=False):
        for name, (function, *args) in _programs().items():
            program = st.make_graph(function)(*args)
            with st.config(roll_loops=False):
                straight = prepare(program)
            found[name] = {
                "rolled": str(roll_loops(straight)),
                "always rolled": str(roll_loops(straight, always=True)),
                "prepared": str(prepare(program)),
                "plans": [
                    [d.chosen for d in equation.primitive.plan()[1]]
                    for equation in program.equations
                    if hasattr(equation.primitive, "plan")
                ],
                "interpreted": interpretable(program),
                "lowered": st.jit(function).lower(*args).as_text(),
            }
    return found


def _traits(cls: type[Primitive]) -> dict[str, str]:
    """What the class says of itself, in its own attributes and those that it has from families."""
    values = {name: getattr(cls, name, None) for name in Primitive.__annotations__}
    return {
        name: str(value)
        for name, value in values.items()
        if isinstance(value, bool | Kernel | None) and not name.startswith("_")
    }


def main() -> None:
    """Print the decisions, and which part of the classes has names of this script."""
    decisions = json.loads(_put_back(json.dumps(_decisions())))
    renamed = sum("zz_" in cls.name and "zz_" in cls.__name__ for cls in PRIMITIVES)
    print(json.dumps({"renamed": renamed / len(PRIMITIVES), "decisions": decisions}))


if __name__ == "__main__":
    main()
