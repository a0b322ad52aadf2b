"""What is shown of programs."""

import stretto as st
import stretto.numpy as snp
from tests.pages import page_of, printed, text_in


def test_operations_are_set_apart_and_loops_fold():
    def f(x):
        return st.lax.fori_loop(0, 3, lambda i, c: snp.sin(c), x)

    program = st.make_graph(f)(1.0)
    html = page_of(program)
    assert '<span class="op">sin</span>' in html
    folded = html.split("<details>")
    assert len(folded) == 2 and folded[1].startswith("<summary><b>body</b>")
    assert "sin" in folded[1] and "Program f" in html and "1 input" in html
    assert "sin" in printed(program)


def test_all_of_its_text_is_there():
    def f(x, y):
        return st.lax.cond(x > 0, lambda a: a * 2, st.jit(snp.cos), y)

    program = st.make_graph(f)(1.0, 2.0)
    words = lambda text: " ".join(text.split()).replace(":", "")
    shown = words(text_in(program))
    for text in str(program).split("\n"):
        assert words(text) in shown


def test_names_are_escaped():
    def f(x):
        return x + 1

    f.__name__ = "<script>"
    assert "<script>" in text_in(st.make_graph(f)(1.0))


def test_a_long_program_is_cut():
    def f(x):
        for _ in range(5000):
            x = snp.sin(x)
        return x

    program = st.make_graph(f)(1.0)
    assert "print(program) shows all of it" in text_in(program)
    assert "5,000 equations" in text_in(program)
    assert str(program).count("\n") == 5001 and repr(program) == "<Program f: 5000 equations>"
    assert printed(program).count("\n") < 60


def test_one_without_equations():
    assert "0 equations" in text_in(st.make_graph(lambda: ())())
