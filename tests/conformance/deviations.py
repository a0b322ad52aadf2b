"""Where Stretto and the array API standard differ, and what it chooses where the standard is open.

`tools/make_conformance.py` writes these into `docs/conformance.md`; `test_deviations.py` holds each
to be so.
"""

DEVIATIONS = {
    # key: (what the standard says, what Stretto does, why)
    "assignment": (
        "`x[index] = y` changes the array; `x += y` may change it in place.",
        "`x[index] = y` raises `TypeError`, which names `x = x.at[index].set(y)`. `x += y` binds "
        "`x` to a new array.",
        "Arrays are immutable, so that functions of them can be traced and differentiated.",
    ),
    "32 bits": (
        "There are `int64`, `uint64`, `float64` and `complex128`.",
        "Only with `st.config.enable_x64 = True`, or in `with st.enable_x64():`. Without it they "
        "are left out of `__array_namespace_info__().dtypes()`, and asking for one warns and gives "
        "that of 32 bits. The default dtypes are `float32` and `int32` then, as the standard "
        "allows.",
        "What this library is for is computed in 32 bits or fewer; JAX does the same.",
    ),
    "traced shapes": (
        "`nonzero`, `unique_*`, `repeat` by an array, and boolean masks give shapes that depend on "
        "values.",
        "So they do for concrete arrays. Inside `jit` and other transformations they need `size=` "
        "(`repeat`: `total_repeat_length=`), and masks `where`; without it they raise an error "
        "that says so.",
        "A compiled program has static shapes.",
    ),
    "transpose": (
        "`x.T` of an array that is not of rank 2 should raise.",
        "It reverses the axes.",
        "NumPy and JAX do; `x.mT` is there for stacks of matrices.",
    ),
}

ERRATA = {
    "sqrt": "The standard's text gives `sqrt` of `±inf + bj` for the other sign of infinity; this "
    "library follows C99, as the standard does elsewhere: `sqrt(-inf + 1j)` is `0 + inf j`."
}

CHOICES = {
    # key: what Stretto does where the standard lets a library choose
    "out of bounds": "An integer index out of bounds reads the nearest element; "
    '`x.at[index].get(mode="fill")` and `mode="raise"` do otherwise.',
    "mixed kinds": "Integers and floats promote together, by JAX's table: `int32` with `float16` "
    "is `float16`.",
    "floor_divide": "`x // y` is what fits `x % y`, as in Python: `1.0 // -inf` is `-1.0`, and "
    "`inf // 1.0` is NaN.",
    "from_dlpack": "`from_dlpack` copies memory that others can write, unless `copy=False`: later "
    "writes are seen then. Memory is lent, marked read-only, to NumPy, which heeds the mark, and "
    "to who asks with `copy=False`; others, such as PyTorch, which writes it, get a copy.",
    "asarray": "`asarray` copies memory that others can write; with `copy=False` it raises "
    "`ValueError`.",
    "subnormal": "Compiled programs take subnormal numbers for zero, and give zero for them, as "
    "XLA does on the CPU; `nextafter` alone gives them. Eager functions have them.",
    "max dimensions": "Arrays have at most 64 axes.",
    "real results": "`real` of a real array is the array, and `conj` likewise.",
}
