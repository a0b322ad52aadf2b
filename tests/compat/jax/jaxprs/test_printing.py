"""The text of jaxprs, laid out as JAX's is."""

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax.jaxprs.making import make_jaxpr
from stretto.compat.jax.jaxprs.printing import _letters


def test_what_fits_is_on_one_line():
    closed = make_jaxpr(lambda x: snp.sin(x) * x)(2.0)
    assert str(closed) == "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b a in (c,) }"
    assert str(closed) == repr(closed) == closed.pretty_print() == str(closed.jaxpr)
    assert str(closed.eqns[0]) == "a:f32[] = sin b"


def test_calls_and_constants():
    closed = make_jaxpr(lambda x: st.jit(snp.sin)(x) + snp.arange(2.0))(snp.ones(2))
    assert str(closed).splitlines() == [
        "{ lambda a:f32[2]; b:f32[2]. let",
        "    c:f32[2] = jit[",
        "      name=sin",
        "      jaxpr={ lambda ; d:f32[2]. let e:f32[2] = sin d in (e,) }",
        "    ] b",
        "    f:f32[2] = add c a",
        "  in (f,) }",
    ]


def test_loops_and_branches():
    def f(xs):
        total, _ = st.lax.scan(lambda c, x: (c * x + snp.sin(x), None), 0.0, xs)
        return st.lax.cond(total > 0, lambda y: y, lambda y: -y, total)

    assert (
        str(make_jaxpr(f)(snp.arange(5.0)))
        == """\
{ lambda ; a:f32[5]. let
    b:f32[] = scan[
      jaxpr={ lambda ; c:f32[] d:f32[]. let
          e:f32[] = mul c d
          f:f32[] = sin d
          g:f32[] = add e f
        in (g,) }
      length=5
      num_carry=1
      num_consts=0
      reverse=False
      unroll=1
    ] 0.0:f32[] a
    h:bool[] = gt b 0.0:f32[]
    i:i32[] = convert_element_type[new_dtype=int32 weak_type=False] h
    j:f32[] = cond[
      branches=(
        { lambda ; k:f32[]. let l:f32[] = neg k in (l,) }
        { lambda ; m:f32[]. let  in (m,) }
      )
    ] i b
  in (j,) }"""
    )


def test_letters():
    letters = _letters()
    first = [next(letters) for _ in range(28)]
    assert first[0] == "a" and first[25:] == ["z", "ba", "bb"]
