"""Types of a library's own: at rest, traced, passed, taken from outside, and refused."""

from tests.compat.jax.running import START, fails, prints

WHOLE = {"STRETTO_TRACEBACK_FILTERING": "off"}
BOX = (
    START
    + """
import dataclasses
from jax.experimental import hijax as hjx

@dataclasses.dataclass(frozen=True)
class Held:
    leaf_avals: tuple
    treedef: object
    def normalize(self):
        return Held(tuple(a.normalize() for a in self.leaf_avals), self.treedef)

class Box:
    def __init__(self, tree):
        self.leaves, self.treedef = jax.tree.flatten(tree)
    def cur_qdd(self):
        return Held(tuple(map(jax.typeof, self.leaves)), self.treedef)
    def get(self):
        return get_p.bind(self)
    def set(self, tree):
        set_p.bind(self, *jax.tree.leaves(tree), treedef=jax.tree.structure(tree))

class BoxType(hjx.MutableHiType):
    def __eq__(self, other):
        return isinstance(other, BoxType)
    def __hash__(self):
        return 1
    def new_from_loval(self, held, *values):
        return Box(jax.tree.unflatten(held.treedef, values))
    def read_loval(self, held, box):
        return jax.tree.leaves(box.get())
    def update_from_loval(self, held, box, *values):
        box.set(jax.tree.unflatten(held.treedef, values))

hjx.register_hitype(Box, lambda box: BoxType())

class Get(hjx.HiPrimitive):
    def to_lojax(self, box):
        return jax.tree.unflatten(box.treedef, box.leaves)

class Set(hjx.HiPrimitive):
    multiple_results = True
    def to_lojax(self, box, *leaves, treedef):
        box.leaves, box.treedef = list(leaves), treedef
        return []

class New(hjx.HiPrimitive):
    def to_lojax(self, x):
        return Box(x)

get_p, set_p, new_p = Get("get"), Set("set"), New("new")
"""
)


def test_at_rest_they_are_objects():
    code = """
        box = new_p.bind({"x": 1.0})
        box.set([box.get()["x"] + 1, 2])
        print(box.get(), jax.tree.leaves([box]) == [box], jax.typeof(box) == BoxType())
    """
    assert prints(code, start=BOX) == ["[2.0, 2] True True"]


def test_passed_and_taken_from_outside():
    code = """
        box, other = Box({"x": jnp.zeros(2), "n": 0}), Box(jnp.ones(2))
        traced = []

        @jax.jit
        def f(b, y):
            traced.append(1)
            now = b.get()
            b.set({"x": now["x"] + y, "n": now["n"] + 1})
            other.set(other.get() * 2)
            return other.get() + b.get()["x"]

        print(f(box, 1.0), f(box, 2.0), len(traced))
        print(box.get()["x"], box.get()["n"], other.get())
        other.set(jnp.zeros(2))
        print(f(box, 0.0))
    """
    assert prints(code, start=BOX) == ["[3. 3.] [7. 7.] 1", "[3. 3.] 2 [4. 4.]", "[3. 3.]"]


def test_in_loops_branches_and_derivatives():
    code = """
        box = Box(jnp.zeros(()))

        def step(c, x):
            box.set(box.get() + x)
            return c + box.get(), None

        print(jax.lax.scan(step, 0.0, jnp.arange(4.0))[0], box.get())
        jax.lax.cond(True, lambda b: b.set(b.get() * 2), lambda b: None, box)
        print(box.get())

        @jax.jit
        @jax.grad
        def g(x):
            made = new_p.bind(x)
            made.set(made.get() ** 2)
            box.set(box.get() + 1)
            return jax.lax.fori_loop(0, 2, lambda i, c: c * made.get(), 1.0)

        print(g(3.0), box.get())
        key = Box(jax.random.key(0))
        draw = jax.jit(lambda k: (k.set(jax.random.split(k.get())[0]), 0)[1])
        draw(key), draw(key)
        again = jax.random.split(jax.random.split(jax.random.key(0))[0])[0]
        print((key.get() == again).all())
    """
    assert prints(code, start=BOX) == ["10.0 6.0", "12.0", "108.0 13.0", "True"]


def test_what_cannot_be_is_refused():
    start = BOX + "\nbox = Box({'x': 1.0})\n"
    changed = fails(
        "jax.jit(lambda b: b.set([1.0, 2.0]))(box)", start=start, STRETTO_TRACEBACK_FILTERING="off"
    )
    assert "what a Box consists of changes inside of a traced function" in changed
    twice = fails(
        "jax.jit(lambda a, b: a.set({'x': 2.0}))(box, box)",
        start=start,
        STRETTO_TRACEBACK_FILTERING="off",
    )
    assert "one reference is passed as a" in twice
    returned = fails("jax.jit(lambda: box)()", start=start, **WHOLE)
    assert "must be an array or a number; got a reference" in returned
    by = fails(
        "jax.grad(lambda b: b.get()['x'])(box)", start=start, STRETTO_TRACEBACK_FILTERING="off"
    )
    assert "must be an array or a number; got a reference" in by
    later = """
        f = jax.jit(lambda: box.get()["x"])
        f()
        box.set({"x": jnp.ones(3)})
        f()
    """
    assert "has changed since a function that uses it was traced" in fails(
        later, start=start, STRETTO_TRACEBACK_FILTERING="off"
    )
    lost = fails("hjx.VJPHiPrimitive()", start=start, **WHOLE)
    assert "VJPHiPrimitive is not in Stretto: make the operation with stretto.primitive" in lost
