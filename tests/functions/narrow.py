"""The check that narrow floats round once, last: in float16 and bfloat16, against 64 bits.

Of the same inputs, at three magnitudes, each result that 64 bits say fits the narrow dtype is what
they say, to a few units in the last place; and so are gradients. `table.py` says what is called.
Run as `python -m tests.functions.narrow [NAME...]` this lists what is not.
"""

import sys
import warnings
import zlib
from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np

import stretto as st
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import Value
from tests.functions import checks
from tests.functions.table import ENTRIES, Entry, resolve

MAGNITUDES = (1, 150, 5e-5)
"""What arrays of the table, most of them from -2 to 2, are multiplied by."""

UNITS = 4
"""Units in the last place that a result may be off, of its element or of the largest summand's."""

DTYPES = ("float16", "bfloat16")


def _results(fun: Callable, arrays: list) -> list:
    out = checks.leaves(fun(*arrays))
    return [v for v in out if isinstance(v, Value) and v.type.kind == "float"]


def _gradients(fun: Callable, arrays: list) -> list:
    moving = [
        i
        for i, a in enumerate(arrays)
        if a.size and str(a.dtype) in (*DTYPES, "float32", "float64")
    ]
    if not moving:
        return []

    def total(*some):
        full = list(arrays)
        for i, v in zip(moving, some):
            full[i] = v
        return _results(fun, full)

    out, back = st.vjp(total, *[arrays[i] for i in moving])
    # Numbers that each of the dtypes has; all 1 would have sums of softmax's slopes cancel.
    rng = np.random.default_rng(0)
    cts = [np.asarray(rng.integers(2, 9, v.shape) / 4).astype(v.dtype) for v in out]
    return list(back(cts)) if out else []


def wrong(got: np.ndarray, want: np.ndarray, dtype: str) -> str:
    """What is wrong with a narrow result, in words; nothing where it is right."""
    info = ml_dtypes.finfo(dtype)
    if str(got.dtype) != dtype:
        return ""  # of a wider dtype, as counts and statistics of tests are
    got, want = got.astype(np.float64), want.astype(np.float64)
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    fits = np.isfinite(want) & (np.abs(want) <= float(info.max) * (1 - float(info.eps)))
    lost = fits & ~np.isfinite(got)
    if lost.any():
        return f"{got[lost][0]} for {want[lost][0]:.4g}"
    gone = fits & (got == 0) & (np.abs(want) > max(2 * float(info.smallest_normal), 1e-8))
    if gone.any():
        return f"0 for {want[gone][0]:.4g}"
    error = np.where(fits, np.abs(got - want), 0)
    # What cancels to less than float32 can tell is not looked at.
    size = np.abs(want[fits]).max(initial=0)
    unit = float(info.eps) * np.maximum(np.abs(want), 1e-3 * size) + max(
        float(info.smallest_subnormal), 1e-10
    )
    units = error / np.where(fits, unit, 1)
    if units.size and units.max() > UNITS:
        worst = units.argmax()
        return f"{got.flat[worst]:.6g} for {want.flat[worst]:.6g}, {units.max():.3g} units"
    return ""


def faults(fun: Callable, arrays: list, dtype: str) -> Iterator[str]:
    """What is wrong with a function of these arrays of 64 bits, in words."""
    with st.enable_x64(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        floats = [a.dtype == np.float64 for a in arrays]
        narrow = [a.astype(dtype) if f else a for a, f in zip(arrays, floats)]
        exact, wide = (
            [a.astype(t) if f else a for a, f in zip(narrow, floats)]
            for t in ("float64", "float32")
        )
        for kind, of in (("value", _results), ("gradient", _gradients)):
            try:
                want = [np.asarray(v) for v in of(fun, exact)]
                # What float32 has not right either is not a matter of rounding once.
                right = [np.asarray(v).astype(np.float32) for v in of(fun, wide)]
            except (TypeError, ValueError, MissingRuleError):
                return  # these arguments are refused in 64 bits, too, or have no derivative
            try:
                got = [np.asarray(v) for v in of(fun, narrow)]
            except TypeError as error:
                if dtype not in str(error):  # else it is refused, in words
                    yield f"{kind}: {error}"
                return
            for a, b, c in zip(got, want, right):
                words = wrong(a, b, dtype)
                if words and not wrong(c.astype(dtype), b, dtype):
                    yield f"{kind} {words}"
                    break


def check(entry: Entry) -> list[str]:
    """What is wrong with an entry of the table in narrow floats."""
    out = []
    for dtype in DTYPES:
        with st.enable_x64():
            several = list(checks.instances(entry, ("f64",)))
        for _, each, fun, _, arrays, _ in several:
            if not any(a.dtype == np.float64 for a in arrays):
                continue
            for magnitude in MAGNITUDES:
                scaled = [a * magnitude if a.dtype == np.float64 else a for a in arrays]
                words = checks.words(entry, each, dtype)
                for fault in faults(fun, scaled, dtype):
                    out.append(f"{words} times {magnitude}: {fault}")
    return out


A, B = (3, 4), (3, 4)
_SIGNS = np.asarray([1.0, -1.0, 1.0])
_LABELS = np.asarray([0, 3, 1])
NETWORKS: dict[str, tuple[tuple, dict]] = {
    # name below `stretto.nn`: the shapes of arrays to draw, or arrays, and static arguments
    "functional.pairwise_distance": ((A, B), {}),
    "functional.cosine_similarity": ((A, B), {}),
    "functional.cosine_embedding_loss": ((A, B, _SIGNS), {}),
    "functional.triplet_margin_loss": ((A, B, A), {"swap": True}),
    "functional.mse_loss": ((A, B), {}),
    "functional.l1_loss": ((A, B), {}),
    "functional.smooth_l1_loss": ((A, B), {}),
    "functional.huber_loss": ((A, B), {}),
    "functional.gaussian_nll_loss": ((A, B, np.full(A, 0.25)), {}),
    "functional.poisson_nll_loss": ((A, np.full(A, 2.0)), {"log_input": True, "full": True}),
    "functional.nll_loss": ((A, _LABELS), {}),
    "functional.cross_entropy": ((A, _LABELS), {"label_smoothing": 0.1}),
    "functional.binary_cross_entropy_with_logits": ((A, np.full(A, 0.25)), {}),
    "functional.kl_div": ((A, np.full(A, 0.25)), {}),
    "functional.hinge_embedding_loss": (((3,), _SIGNS), {}),
    "functional.margin_ranking_loss": (((3,), (3,), _SIGNS), {}),
    "functional.soft_margin_loss": (((3,), _SIGNS), {}),
    "functional.multi_margin_loss": ((A, _LABELS), {"p": 2}),
    "functional.multilabel_soft_margin_loss": ((A, np.full(A, 1.0)), {}),
    "functional.layer_norm": ((A,), {"normalized_shape": (4,)}),
    "functional.rms_norm": ((A,), {"normalized_shape": (4,), "eps": 1e-12}),
    "functional.group_norm": ((A,), {"num_groups": 2}),
    "functional.batch_norm": ((A,), {"running_mean": None, "running_var": None, "training": True}),
    "functional.instance_norm": (((2, 3, 4),), {}),
    "functional.local_response_norm": (((2, 3, 4),), {"size": 2}),
    "functional.normalize": ((A,), {}),
    "functional.softmax": ((A,), {"dim": 1}),
    "functional.log_softmax": ((A,), {"dim": 1}),
    "functional.gelu": ((A,), {}),
    "functional.silu": ((A,), {}),
    "functional.mish": ((A,), {}),
    "functional.softplus": ((A,), {}),
    "functional.softsign": ((A,), {}),
    "functional.tanhshrink": ((A,), {}),
    "functional.glu": ((A,), {}),
    "functional.elu": ((A,), {}),
    "functional.selu": ((A,), {}),
    "functional.celu": ((A,), {}),
    "functional.hardswish": ((A,), {}),
    "functional.avg_pool1d": ((A,), {"kernel_size": 2}),
    "functional.lp_pool1d": ((A,), {"norm_type": 2.0, "kernel_size": 2}),
    "functional.interpolate": (((2, 3, 4),), {"scale_factor": 2, "mode": "linear"}),
    "functional.linear": ((A, (5, 4), (5,)), {}),
    "functional.bilinear": (((3, 2), (3, 4), (5, 2, 4)), {}),
    "functional.scaled_dot_product_attention": (((2, 3, 4),) * 3, {}),
    "standardize": ((A,), {}),
    "logmeanexp": ((A,), {}),
    "squareplus": ((A,), {}),
    "sparse_plus": ((A,), {}),
    "gelu": ((A,), {}),
    "glu": ((A,), {}),
}


def check_network(name: str) -> list[str]:
    """What is wrong with a function of `stretto.nn`, or of `jax.nn`, in narrow floats."""
    given, options = NETWORKS[name]
    fun = resolve(f"nn.{name}" if name.startswith("functional.") else f"compat.jax.nn.{name}")
    called = lambda *a: fun(*a, **options)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    arrays = [rng.uniform(-2, 2, a) if isinstance(a, tuple) else a for a in given]
    drawn = [isinstance(a, tuple) for a in given]
    out = []
    for dtype in DTYPES:
        for magnitude in MAGNITUDES:
            scaled = [a * magnitude if d else a for a, d in zip(arrays, drawn)]
            for fault in faults(called, scaled, dtype):
                out.append(f"{name} in {dtype} times {magnitude}: {fault}")
    return out


def check_named(name: str) -> list[str]:
    """What is wrong with an entry of the table, or a function of `NETWORKS`."""
    return check_network(name) if name in NETWORKS else check(ENTRIES[name])


LEFT_OUT = ("lax.", "random.", "numpy.fft.", "fft.")
"""Operations, which round as XLA's do; draws, which `tests/random` holds; and transforms."""


def names() -> list[str]:
    """What is checked, once the table is filled."""
    entries = sorted(name for name, e in ENTRIES.items() if "f32" in " ".join(e.dtypes))
    return [*[name for name in entries if not name.startswith(LEFT_OUT)], *NETWORKS]


if __name__ == "__main__":
    from tests.functions import test_functions  # noqa: F401 (fills the table)

    for each in sys.argv[1:] or names():
        for line in check_named(each):
            print(line, flush=True)
