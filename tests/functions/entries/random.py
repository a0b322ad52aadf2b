"""Entries of `random`: draws at any key are the same however they are transformed.

Values, JAX's among them, and laws of the distributions are tested in `tests/random`.
"""

from tests.functions.table import call, entry, given, key, typed_key, without_entry, x

VALUES = "no NumPy function draws these numbers: their values are in tests/random"
IMPLICIT = (
    "the derivative is that of the quantile, which no draw at one key follows: "
    "tests/random/test_gamma_draws.py"
)
LOOP = "a loop that compiles for seconds"
COMPOSED = "made of loggamma, whose loop takes seconds to compile and is compiled there"


def p(*shape):
    """Positive parameters."""
    return x(*shape, low=0.5, high=3.0)


def draws(name, calls, dtypes="f32", **reasons):
    """Enter a function of `random`, which has no like."""
    entry(f"random.{name}", None, calls, dtypes, unlike=VALUES, **reasons)


# Keys
draws("split", [call(key()), call(key(), 3), call(key(), (2, 2)), call(typed_key(), 3)], "u32")
draws("fold_in", [call(key(), 5), call(key(), x(dtype="u32")), call(typed_key(), 5)], "u32")
draws("clone", [call(key()), call(typed_key())], "u32")
draws("key_data", [call(key()), call(typed_key())], "u32")
draws("wrap_key_data", [call(x(2)), call(x(3, 2))], "u32")
draws("key", [call(x()), call(7)], "i32 u32")
draws("PRNGKey", [call(x()), call(7)], "i32 u32", narrowed="JAX's words: the low one without x64")
draws("bits", [call(key()), call(key(), (2, 3), "uint8"), call(typed_key(), (3,))], "u32")

# Draws of a shape
for name in ("cauchy", "exponential", "gumbel", "laplace", "logistic", "maxwell", "normal"):
    draws(name, [call(key(), (2, 3)), call(typed_key())])
draws("rademacher", [call(key(), (2, 3)), call(typed_key())])
draws("uniform", [call(key(), (2, 3)), call(typed_key(), (3,), None, x(3, low=-3, high=-1), p())])
draws("ball", [call(key(), 3), call(typed_key(), 2, 3, (2,))], uncompiled=COMPOSED)
draws("orthogonal", [call(key(), 3), call(typed_key(), 2, (2,), m=3)])

# Draws with parameters that move and stretch them
draws("truncated_normal", [call(key(), x(low=-2, high=-1), p(3)), call(typed_key(), -1.0, 1.0)])
draws("double_sided_maxwell", [call(key(), x(), p(), (3,)), call(typed_key(), x(2), p(2))])
draws("lognormal", [call(key(), p(3)), call(typed_key(), shape=(2,))])
draws("pareto", [call(key(), p(3)), call(typed_key(), p(), (2,))])
draws("rayleigh", [call(key(), p(3)), call(typed_key(), p(), (2,))])
draws("triangular", [call(key(), x(3, low=-3, high=-1), x(3, low=-1, high=1), p(3))])
draws("wald", [call(key(), p(3)), call(typed_key(), p(), (2,))])
draws("weibull_min", [call(key(), p(), p(), (3,)), call(typed_key(), p(2), p(2))])
draws(
    "multivariate_normal",
    [
        call(key(), x(2), given([[2.0, 0.5], [0.5, 1.0]]), method=method)
        for method in ("cholesky", "eigh", "svd")
    ],
)

# Discrete draws
DISCRETE = "the draws are whole numbers"
draws("bernoulli", [call(key(), x(3, low=0, high=1)), call(typed_key(), shape=(2,))])
draws(
    "categorical",
    [
        call(key(), x(2, 3)),
        call(typed_key(), x(2, 3), axis=0, shape=(4, 3)),
        call(key(), x(4), shape=(2,), replace=False),
    ],
    undifferentiated=DISCRETE,
)
draws("randint", [call(key(), (2, 3), 0, 10), call(typed_key(), (), x(), 5)], "i32")
draws("geometric", [call(key(), x(3, low=0.2, high=0.9)), call(typed_key(), 0.5, (2,))])
draws("poisson", [call(key(), x(3, low=0.5, high=20)), call(typed_key(), p(), (2,))], costly=LOOP)
draws(
    "binomial",
    [call(key(), given(40.0), x(3, low=0.1, high=0.9)), call(typed_key(), 5.0, 0.5, (2,))],
    undifferentiated=DISCRETE,
    costly=LOOP,
)
draws(
    "multinomial",
    [call(key(), given(10.0), given([0.2, 0.3, 0.5]))],
    undifferentiated=DISCRETE,
    uncompiled="made of binomial, whose loop takes seconds to compile and is compiled there",
)
draws(
    "permutation",
    [call(key(), 5), call(typed_key(), x(3, 2)), call(key(), x(2, 3), 1, independent=True)],
)
draws(
    "choice",
    [
        call(key(), 5, (3,)),
        call(typed_key(), x(4, 2), (2,), p=given([0.1, 0.2, 0.3, 0.4])),
        call(key(), x(4), (3,), False),
    ],
    undifferentiated="which element is drawn jumps with the probabilities",
)

# Draws by rejection
draws(
    "loggamma",
    [call(key(), p(3)), call(typed_key(), p(), (2,))],
    undifferentiated=IMPLICIT,
    costly=LOOP,
)
for name in ("gamma", "chisquare", "t"):
    draws(
        name,
        [call(key(), p(3)), call(typed_key(), p(), (2,))],
        undifferentiated=IMPLICIT,
        uncompiled=COMPOSED,
    )
for name in ("beta", "f"):
    draws(
        name,
        [call(key(), p(3), p()), call(typed_key(), p(), p(), (2,))],
        undifferentiated=IMPLICIT,
        uncompiled=COMPOSED,
    )
draws("dirichlet", [call(key(), p(3))], undifferentiated=IMPLICIT, uncompiled=COMPOSED)
draws(
    "generalized_normal",
    [call(key(), p(), (3,)), call(typed_key(), 2.0)],
    undifferentiated=IMPLICIT,
    uncompiled=COMPOSED,
)

without_entry("of the kind of a key, no arrays: tests/random/test_keys.py", "random.key_impl")
without_entry("a dtype of keys: tests/random/test_key_arrays.py", "random.key_dtype")
without_entry(
    "a stream of keys, which is state: tests/random/test_streams.py",
    "random.keys",
    "random.manual_seed",
    "random.next_key",
)
