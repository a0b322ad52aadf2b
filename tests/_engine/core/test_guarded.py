"""Guarded functions are as they were, but for the frames that their errors show."""

import dis
import importlib.util
import inspect
import json
import logging
import pickle
import pkgutil
import subprocess
import sys
import traceback
import types

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core import guarded
from stretto._engine.core.guarded import guard
from stretto._engine.core.position import PACKAGE

X = snp.ones(3)
MADE = PACKAGE + "made.py"


@pytest.fixture
def made(monkeypatch):
    """Makes functions of source text, as if it stood in the package; keeps what leaves them."""
    left = []
    monkeypatch.setattr(guarded, "leaving", [left.append])

    def make(source, **names):
        space = {"__name__": "stretto.made", **names}
        exec(compile(inspect.cleandoc(source), MADE, "exec"), space)
        return space, left

    return make


def test_results_are_as_before(made):
    space, left = made(
        """
        def f(a, b=2, *more, c=3, **named):
            try:
                return a / b + sum(more) + c, named
            except ZeroDivisionError:
                return [x for x in more]
            finally:
                c += 1
        """
    )
    f = space["f"]
    code, signature = f.__code__, inspect.signature(f)
    before = f(1), f(1, 0, 5), f(1, 1, 1, c=4, d=5)
    assert guard(f) is f and f.__code__ is not code
    assert (f(1), f(1, 0, 5), f(1, 1, 1, c=4, d=5)) == before
    assert inspect.signature(f) == signature and not left
    assert guard(f).__code__ is f.__code__  # once is enough


def test_errors_pass_through_what_is_leaving(made):
    space, left = made(
        """
        def f(x):
            for _ in range(3):
                with hold:
                    try:
                        [1 / y for y in x]
                    finally:
                        done.append(x)
        """,
        hold=st.config(),
        done=[],
    )
    f = guard(space["f"])
    with pytest.raises(ZeroDivisionError) as caught:
        f([1, 0])
    assert left == [caught.value] and space["done"] == [[1, 0]]
    assert f([1]) is None
    with pytest.raises(TypeError):
        f()  # it was not called at all
    assert len(left) == 1


def test_nothing_counts_as_handled_afterwards(made):
    space, left = made("f = lambda x: 1 / x")
    f = guard(space["f"])
    handled = sys.exception()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            f(0)
    assert sys.exception() is handled
    try:
        raise KeyError
    except KeyError as outer:
        with pytest.raises(ZeroDivisionError) as caught:
            f(0)
        assert caught.value.__context__ is outer and sys.exception() is outer
    assert len(left) == 4


def test_an_interrupt_in_the_handler_goes_on(made, monkeypatch):
    def interrupt(error):
        raise KeyboardInterrupt

    space, _ = made("f = lambda x: 1 / x")
    f = guard(space["f"])
    monkeypatch.setattr(guarded, "leaving", [interrupt])
    handled = sys.exception()
    with pytest.raises(KeyboardInterrupt):
        f(0)
    assert sys.exception() is handled


def test_an_interrupted_handler_ends_as_those_of_the_compiler_do():
    def handles():
        try:
            guard(1)
        except BaseException:
            guard(2)
            raise

    end = guarded.with_handler(handles.__code__).co_code[-6:]
    assert [dis.opname[code] for code in end[::2]] == ["COPY", "POP_EXCEPT", "RERAISE"]
    assert handles.__code__.co_code[-6:] == end


def test_functions_with_many_constants_and_closures(made):
    constants = ", ".join(f"{i}.5" for i in range(300))
    space, left = made(
        f"""
        def outer(k):
            def f(x):
                return k / x, [{constants}, x]
            return f
        """
    )
    two, three = guard(space["outer"](2)), guard(space["outer"](3))
    assert two.__code__ is three.__code__  # one code for all closures
    assert (two(1)[0], three(1)[0]) == (2, 3)
    for f in (two, three):
        with pytest.raises(ZeroDivisionError):
            f(0)
    assert len(left) == 2


def test_of_a_class_its_methods(made):
    space, left = made(
        """
        class Base:
            def __init__(self, x):
                self.x = 1 / x

            @property
            def third(self):
                return [0][3]

            @staticmethod
            def fourth():
                return {}["fourth"]

            @classmethod
            def fifth(cls):
                return cls.sixth

        class Own(Base):
            def go(self):
                yield 1 / 0

            async def wait(self):
                return 1 / 0

            async def go_on(self):
                yield 1 / 0
        """
    )
    own = space["Own"]
    later = [own.go, own.wait, own.go_on]
    codes = [function.__code__ for function in later]
    guard(own)
    faults = [lambda: own(0), lambda: own(1).third, own.fourth, own.fifth]
    for fault in faults:
        with pytest.raises((ZeroDivisionError, LookupError, AttributeError)):
            fault()
    assert len(left) == len(faults)
    # What runs the body of a generator, or of a coroutine, is not its call.
    assert [function.__code__ for function in later] == codes
    assert all(function.__code__ is code for function, code in zip(later, codes, strict=True))


def test_what_is_not_the_packages_own_is_left_alone():
    def f():
        pass

    code = f.__code__
    guard(f)
    guard(types.SimpleNamespace(f=f))
    assert f.__code__ is code
    own = type("Own", (), {"f": f})
    guard(own)
    assert own.f.__code__ is code and own not in guarded._members  # which would keep it alive


def test_tools_that_read_code_still_can():
    for function in (snp.concatenate, snp.add, st.nn.functional.conv2d, st.Ensemble.__init__):
        code = function.__code__
        assert list(dis.get_instructions(code))
        assert list(code.co_lines()) and len(list(code.co_positions())) == len(code.co_code) // 2
        assert pickle.loads(pickle.dumps(function)) is function
        assert inspect.getsource(function)


def public_modules():
    return [
        m.name
        for m in pkgutil.walk_packages(st.__path__, "stretto.")
        if not any(part.startswith("_") for part in m.name.split(".")[1:])
    ]


def test_modules_that_are_imported_by_themselves():
    """A function of each module that users import so, in a process that asked for nothing else."""
    names = [
        "special",
        "numpy.fft",
        "numpy.linalg",
        "scipy.linalg",
        "scipy.signal",
        "image",
        "dtypes",
    ]
    assert {f"stretto.{name}" for name in names} <= set(public_modules())
    script = "\n".join(
        [
            f"import stretto.{name} as module\n"
            "for name in dir(module):\n"
            "    fun = getattr(module, name)\n"
            "    if type(fun) is types.FunctionType and not name.startswith('_'):\n"
            "        if name in getattr(module, '__all__', [name]):\n"
            "            assert _leave in fun.__code__.co_consts, (module, name)\n"
            "            seen += 1"
            for name in names
        ]
    )
    start = "import types\nfrom stretto._engine.core.guarded import _leave\nseen = 0\n"
    script = f"{start}{script}\nassert seen > 100, seen"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=100)


# What users see


def wrong():
    return X + snp.ones(7)


FAULTS = {
    "operator": wrong,
    "reflected": lambda: 2 ** snp.ones(3) @ snp.ones(7),
    "method": lambda: X.reshape(7),
    "index": lambda: X[1, 2],
    "updates": lambda: X.at[0].set(snp.ones(5)),
    "module": lambda: st.nn.Linear(3, 2)(snp.ones(9)),
    "optimizer": lambda: st.optim.adam(0.1).update({"a": X}, st.optim.adam(0.1).init(X)),
    "distribution": lambda: st.scipy.stats.norm.logpdf("a"),
    "missing name": lambda: snp.nonsense,
    "missing setting": lambda: st.config(nonsense=1),
    "class": lambda: st.Ensemble(3, 4),
    "method loaded when first used": lambda: st.Ensemble(wrong, X[:, None]).fit(wrong, X, None),
    "tree": lambda: st.tree.map(lambda a, b: a, {"a": 1}, {"b": 1}),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_only_the_users_lines_are_printed(fault, caplog):
    with pytest.raises(Exception) as caught:
        fault()
    printed = "".join(traceback.format_exception(caught.value))
    message = "".join(traceback.format_exception_only(caught.value))
    assert PACKAGE not in printed and len(printed) - len(message) < 700
    names = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert set(names) == {__file__}
    logging.getLogger("made").error("", exc_info=caught.value)
    assert PACKAGE not in caplog.text


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_off_shows_all(fault):
    with st.config(traceback_filtering="off"), pytest.raises(Exception) as caught:
        fault()
    names = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert any(name.startswith(PACKAGE) for name in names)


def test_the_last_line_is_the_message():
    """A note would stand there, and doctest takes the last line for the message."""
    with pytest.raises(ValueError, match="do not broadcast") as caught:
        wrong()
    assert not hasattr(caught.value, "__notes__")


def test_what_was_handled_inside_is_no_context():
    with pytest.raises(ValueError, match="do not broadcast") as caught:
        wrong()
    assert caught.value.__context__ is None
    try:
        raise KeyError("the user's own")
    except KeyError as own:
        with pytest.raises(ValueError, match="do not broadcast") as caught:
            wrong()
        assert caught.value.__context__ is own


def test_the_users_frames_between_are_shown():
    def callback(a):
        raise KeyError(a)

    with pytest.raises(KeyError) as caught:
        st.tree.map(lambda a: [callback(a)], {"a": 1})
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_the_users_frames_between_are_shown", "<lambda>", "callback"]


def test_what_python_c_runs_is_the_users():
    script = (
        "import stretto as st, stretto.numpy as snp\n"
        "def mine(x):\n    return x + snp.ones(7)\n"
        "st.tree.map(mine, snp.ones(3))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=100
    )
    assert "line 4, in <module>" in done.stderr and "line 3, in mine" in done.stderr
    assert PACKAGE not in done.stderr


def test_frames_of_libraries_that_are_called_here_are_left_out():
    space = {"__name__": "stretto.made", "json": json}
    exec(compile("read = lambda text, **options: json.loads(text, **options)", MADE, "exec"), space)
    read = guard(space["read"])
    with pytest.raises(json.JSONDecodeError) as caught:
        read("{")  # which is found three frames deep in json
    assert {f.filename for f in traceback.extract_tb(caught.value.__traceback__)} == {__file__}
    with pytest.raises(ZeroDivisionError) as caught:
        read("[1.5]", parse_float=lambda text: 1 / 0)  # json calls back
    names = [f.name for f in traceback.extract_tb(caught.value.__traceback__)]
    assert names == [sys._getframe().f_code.co_name, "<lambda>"]


IPYTHON = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor")
shell.run_cell("import stretto as st, stretto.numpy as snp; x = snp.ones(3)")
for line in sys.argv[1:]:
    shell.run_cell(line)
"""


@pytest.mark.skipif(
    importlib.util.find_spec("IPython") is None, reason="IPython is not installed here"
)
def test_ipython_shows_the_users_cell_alone():
    lines = [
        "x + snp.ones(7)",
        "snp.concatenate([x, snp.ones((2, 2))])",
        "st.jit(lambda x: x + snp.ones(7))(x)",
        "st.grad(lambda x: x)(x)",
        "st.nn.Linear(3, 2)(snp.ones(9))",
        "snp.nonsense",
    ]
    done = subprocess.run(
        [sys.executable, "-c", IPYTHON, *lines],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert done.stdout.count("Traceback (most recent call last)") == len(lines)
    for name in (PACKAGE, "stretto/numpy", "stretto/nn", "_engine"):
        assert name not in done.stdout


def test_pytest_shows_the_users_lines_alone(tmp_path):
    (tmp_path / "test_made.py").write_text(
        "import stretto.numpy as snp\ndef test_it():\n    snp.ones(3) + snp.ones(7)\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_made.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100
    )
    assert "1 failed" in done.stdout and "do not broadcast" in done.stdout
    assert PACKAGE not in done.stdout and "_engine" not in done.stdout


def test_every_python_calls_with_the_exception_as_its_argument():
    """It is copied above what calls it, under what was handled before."""
    assert set(guarded._CALL) == {(3, minor) for minor in range(11, 16)}
    for version, operations in guarded._CALL.items():
        said = {name: argument for name, argument, _ in operations if name != "LOAD_CONST"}
        ways = {"PRECALL": 1} if version == (3, 11) else {}
        assert said == {"PUSH_NULL": 0, "COPY": 3, "CALL": 1, **ways}
        # The interpreter's notes: four words for a call, which 3.11 has in two instructions.
        assert sum(notes for *_, notes in operations) == (5 if version == (3, 11) else 3)


# The tables of code, as CPython describes them

NUMBERS = [0, 1, 63, 64, 65, 4095, 4096, 300_000]


def test_rows_of_the_table_of_exceptions_are_read_as_they_are_written():
    rows = [(n, n + m, m + 1, n << 1 | 1) for n in NUMBERS for m in NUMBERS]
    written = [guarded._row(*row) for row in rows]
    assert [*guarded._rows(b"".join(written))] == rows
    for each in written:  # only the first byte of a row has the highest bit
        assert [byte >> 7 for byte in each] == [1] + [0] * (len(each) - 1)
    assert guarded._row(1, 3, 70, 2) == bytes([0x81, 2, 0x41, 6, 2])
    assert [*guarded._rows(b"")] == []


def test_rows_are_those_that_python_reads():
    def f(x):
        try:
            with x:
                return [y + 1 for y in x]
        except KeyError:
            return None

    table = f.__code__.co_exceptiontable
    rows = [*guarded._rows(table)]
    assert b"".join([guarded._row(*row) for row in rows]) == table and len(rows) > 3
    found = dis._parse_exception_table(f.__code__)  # in bytes, of two for an instruction
    assert [(2 * a, 2 * b, 2 * c, d) for a, b, c, d in rows] == [
        (row.start, row.end, row.target, row.depth << 1 | row.lasti) for row in found
    ]


@pytest.mark.parametrize(
    ("rows", "around"),
    [
        ([], [(2, 9, 9, 0)]),
        ([(4, 6, 7, 3)], [(2, 4, 9, 0), (4, 6, 7, 3), (6, 9, 9, 0)]),
        ([(2, 9, 5, 1)], [(2, 9, 5, 1)]),
        ([(2, 3, 5, 1), (3, 8, 6, 1)], [(2, 3, 5, 1), (3, 8, 6, 1), (8, 9, 9, 0)]),
        ([(3, 4, 5, 1), (6, 9, 6, 1)],
         [(2, 3, 9, 0), (3, 4, 5, 1), (4, 6, 9, 0), (6, 9, 6, 1)]),
    ],
)  # fmt: skip
def test_the_handler_is_for_what_no_other_is_for(rows, around):
    assert [*guarded._around(iter(rows), 2, 9)] == around


@pytest.mark.parametrize("words", [0, 1, 7, 8, 9, 16, 23])
def test_instructions_without_lines(words):
    def f():
        return 1

    code = f.__code__
    longer = code.replace(
        co_code=code.co_code + bytes([dis.opmap["NOP"], 0] * words),
        co_linetable=code.co_linetable + guarded._without_lines(words),
    )
    assert [*longer.co_lines()][: len([*code.co_lines()])] == [*code.co_lines()]
    ends = [end for _, end, line in longer.co_lines() if line is None and end > len(code.co_code)]
    assert ends[-1:] == [len(code.co_code) + 2 * words] * bool(words)
    assert len(guarded._without_lines(words)) == -(-words // 8)


@pytest.mark.parametrize("constant", [0, 255, 256, 7000])
def test_instructions_with_long_arguments(constant):
    made = guarded._assemble([("LOAD_CONST", -1, 0), ("CALL", 1, 3)], constant)
    extended = [dis.opmap["EXTENDED_ARG"], constant >> 8] if constant > 255 else []
    load = [*extended, dis.opmap["LOAD_CONST"], constant & 255]
    assert made == bytes([*load, dis.opmap["CALL"], 1, *[0] * 6])
