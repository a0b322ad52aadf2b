"""``pipeline_function``: a fitted pipeline of scikit-learn as a function of arrays, for export.

A fitted transformer becomes a function of an array of rows by a rule, which is found by the name of
its class, so that scikit-learn is not imported here. What a rule needs of a transformer it reads at
once; what it makes of rows is traced later. Numbers stay float64 until the rows' dtype is known.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import stretto.numpy as snp
from stretto import special
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto.ensemble.estimators.classifier import EnsembleClassifier
from stretto.ensemble.estimators.estimator import minus, validation
from stretto.ensemble.estimators.regressor import EnsembleRegressor

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

__all__ = ["pipeline_function"]

Fitted = Any
"""A fitted transformer, or a pipeline of them: scikit-learn has no annotations."""

Function = Callable[[Array], Array]
"""What a transformer does with rows, (rows, columns), of floats."""

_LEAST = 10 * np.finfo(np.float64).eps
"""Scales that scikit-learn takes for zero, in place of which it divides by 1."""

_BOUND = 1e-7
"""What a quantile has to be from the ends, in its unit, and a share from 0 and 1."""

_ALL = "compare_all"
"""How places among quantiles are found: a search that halves them has hundreds of nodes."""


def pipeline_function(
    pipeline: Pipeline, **options: Any
) -> Callable[[ArrayLike], dict[str, Array]]:
    """Return what a fitted pipeline does, as a function of arrays: for ``st.export``.

    Transformers may be those of scikit-learn that work on numbers: scalers, ``Normalizer``,
    ``QuantileTransformer``, ``PowerTransformer``, ``SimpleImputer``, ``MissingIndicator``,
    ``PolynomialFeatures``, ``PCA``, ``TruncatedSVD``, ``KBinsDiscretizer``, ``OneHotEncoder``,
    ``OrdinalEncoder``, whatever selects columns, and ``FunctionTransformer`` of a ufunc of NumPy
    that ``stretto.numpy`` has; and ``ColumnTransformer``, ``FeatureUnion`` and pipelines of these.

    Args:
        pipeline: a fitted ``Pipeline`` whose last step is an ``EnsembleClassifier``, an
            ``EnsembleRegressor``, or a pipeline that ends in one.
        **options: what the ``function`` of the last step takes, such as ``coverage=0.8``.

    Returns:
        A function of rows, (rows, columns), the columns in the order in which the pipeline was
            fitted, that gives what the ``function`` of the last step does. What scikit-learn
            refuses when it predicts, such as a category that is not known, is NaN.

    Raises:
        TypeError: ``pipeline`` is no pipeline, its last step is no estimator of Stretto, or a
            transformer is none of these, or works on text; with its name and the way out.
        ValueError: an option is out of range, or categories are equal in the dtype of the rows.
        NotFittedError: it was not fitted.

    >>> import numpy as np, stretto as st
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> x = np.random.default_rng(0).normal(50, 10, size=(200, 2))
    >>> model = st.ensemble.EnsembleRegressor(2, hidden=(8,), epochs=5, random_state=0)
    >>> pipeline = make_pipeline(StandardScaler(), model).fit(x, x.sum(axis=1))
    >>> function = st.ensemble.pipeline_function(pipeline)
    >>> bool(np.allclose(function(x)["mean"], pipeline.predict(x), rtol=1e-5))
    True
    """
    *before, last = _steps(pipeline)
    if hasattr(last, "steps"):
        predict = pipeline_function(last, **options)
    elif isinstance(last, (EnsembleClassifier, EnsembleRegressor)):
        predict = last.function(**options)
    else:
        raise TypeError(
            f"pipeline_function: the last step must be an EnsembleClassifier or an "
            f"EnsembleRegressor of stretto.ensemble, got {type(last).__name__}"
        )
    prepare = _chain(before)
    columns = getattr(pipeline, "n_features_in_", None)

    def predict_from_rows(X: ArrayLike) -> dict[str, Array]:
        x = snp.asarray(X)
        if x.ndim != 2 or (columns is not None and x.shape[1] != columns):
            raise ValueError(
                f"pipeline_function: expected rows, (rows, {columns or 'columns'}), as the "
                f"pipeline was fitted on; got an array of shape {x.shape}"
            )
        return predict(prepare(x.astype(snp.promote_types(x.dtype, np.float32))))

    return predict_from_rows


def _steps(pipeline: Fitted) -> list[Any]:
    if not hasattr(pipeline, "steps"):
        raise TypeError(
            f"pipeline_function: expected a Pipeline of scikit-learn, got "
            f"{type(pipeline).__name__}; an estimator alone has function(), and a search "
            f"best_estimator_"
        )
    return [step for _, step in pipeline.steps]


def _function_of(transformer: Fitted) -> Function:
    """Return what one fitted transformer does."""
    if transformer is None or _is_word(transformer, "passthrough"):
        return _same
    kinds = [kind for kind in type(transformer).__mro__ if kind.__module__.startswith("sklearn.")]
    if any(kind.__name__ == "SelectorMixin" for kind in kinds):
        return _columns_at(transformer.get_support(indices=True))
    rule = _RULES.get(type(transformer).__name__) if type(transformer) in kinds else None
    if rule is None:
        raise _refused(transformer, "is none of the transformers that are written out")
    validation.check_is_fitted(transformer)
    return rule(transformer)


def _refused(transformer: Fitted, reason: str) -> TypeError:
    return TypeError(
        f"pipeline_function: {type(transformer).__name__} {reason}. Write what it does as a "
        f"function of arrays, and put it in front of the steps after it: lambda rows: "
        f"st.ensemble.pipeline_function(pipeline[1:])(written(rows))"
    )


# Joining transformers


def _same(x: Array) -> Array:
    return x


def _chain(transformers: Sequence[Any]) -> Function:
    functions = [_function_of(transformer) for transformer in transformers]

    def chain(x: Array) -> Array:
        for function in functions:
            x = function(x)
        return x

    return chain


def _beside(functions: Sequence[Function], weights: Sequence[float | None]) -> Function:
    """Return what gives the columns of each function, one function after the other."""

    def beside(x: Array) -> Array:
        parts = [
            function(x) if weight is None else function(x) * weight
            for function, weight in zip(functions, weights, strict=True)
        ]
        return snp.concatenate(parts, axis=1)

    return beside


def _columns_at(places: np.ndarray) -> Function:
    return lambda x: x[:, places]


def _pipeline(pipeline: Fitted) -> Function:
    return _chain(_steps(pipeline))


def _feature_union(union: Fitted) -> Function:
    weight_of = (union.transformer_weights or {}).get
    chosen = [(name, part) for name, part in union.transformer_list if not _is_word(part, "drop")]
    functions = [_function_of(part) for _, part in chosen]
    return _beside(functions, [weight_of(name) for name, _ in chosen])


def _column_transformer(table: Fitted) -> Function:
    weight_of = (table.transformer_weights or {}).get
    functions: list[Function] = []
    weights: list[float | None] = []
    for name, part, columns in table.transformers_:
        places = _places(table, columns)
        if not _is_word(part, "drop") and places.size:
            functions.append(_on_columns(places, _function_of(part)))
            weights.append(weight_of(name))
    return _beside(functions, weights)


def _is_word(part: Fitted, word: str) -> bool:
    return isinstance(part, str) and part == word


def _on_columns(places: np.ndarray, function: Function) -> Function:
    return lambda x: function(x[:, places])


def _places(table: Fitted, columns: Tree) -> np.ndarray:
    """Return the indices of columns that are given by names, by indices or by a mask."""
    every = np.arange(table.n_features_in_)
    names: dict[Any, int] = {
        name: k for k, name in enumerate(getattr(table, "feature_names_in_", ()))
    }
    if isinstance(columns, slice):
        start, stop = columns.start, columns.stop
        if isinstance(start, str):
            start = names[start]
        if isinstance(stop, str):
            stop = names[stop] + 1  # a slice by names has its end
        return every[start : stop : columns.step]
    given = [columns] if isinstance(columns, (str, int)) else list(columns)
    if any(isinstance(column, str) for column in given):
        return np.array([names[column] for column in given])
    return every[np.asarray(given)] if given else every[:0]


# Scales


def _affine(middle: np.ndarray | None, scale: np.ndarray | None) -> Function:
    """Return (x − middle) / scale; ``None`` leaves either out."""
    middle = None if middle is None else np.asarray(middle, np.float64)
    scale = None if scale is None else np.asarray(scale, np.float64)

    def affine(x: Array) -> Array:
        if middle is not None:
            x = minus(x, middle)
        return x if scale is None else x / scale.astype(x.dtype)

    return affine


def _standard_scaler(scaler: Fitted) -> Function:
    return _affine(scaler.mean_ if scaler.with_mean else None, scaler.scale_)


def _robust_scaler(scaler: Fitted) -> Function:
    return _affine(scaler.center_, scaler.scale_)


def _max_abs_scaler(scaler: Fitted) -> Function:
    affine = _affine(None, scaler.scale_)
    return _clipped(affine, (-1, 1)) if getattr(scaler, "clip", False) else affine


def _min_max_scaler(scaler: Fitted) -> Function:
    # x scale + min, of which the first two may be large and cancel: (x − data_min) scale + least
    low, high = scaler.feature_range
    affine = _affine(scaler.data_min_, 1 / scaler.scale_)
    return _clipped(lambda x: affine(x) + low, (low, high) if scaler.clip else None)


def _clipped(function: Function, bounds: tuple[float, float] | None) -> Function:
    return function if bounds is None else lambda x: snp.clip(function(x), *bounds)


def _normalizer(normalizer: Fitted) -> Function:
    kind = normalizer.norm

    def normalize(x: Array) -> Array:
        sizes = abs(x)
        if kind == "max":
            norms = sizes.max(axis=1, keepdims=True)
        elif kind == "l1":
            norms = sizes.sum(axis=1, keepdims=True)
        else:
            norms = snp.sqrt((x * x).sum(axis=1, keepdims=True))
        return x / snp.where(norms < _LEAST, 1, norms)

    return normalize


def _power_transformer(transformer: Fitted) -> Function:
    """Return Box and Cox's power of x, or Yeo and Johnson's, standardized.

    With y = x + shift both are p(y) = (y^λ − 1) / λ, or log y for λ = 0; the second, with shift 1,
    is that of x ≥ 0, and −p(1 − x) with the exponent 2 − λ otherwise.
    """
    exponents = np.asarray(transformer.lambdas_, np.float64)
    mean, scale = np.zeros_like(exponents), np.ones_like(exponents)
    if transformer.standardize:
        mean, scale = transformer._scaler.mean_, transformer._scaler.scale_
    if transformer.method == "box-cox":
        power = _power(exponents, mean, scale, 0)
        return lambda x: power(snp.where(x > 0, x, np.nan))
    above = _power(exponents, mean, scale, 1)
    below = _power(2 - exponents, -mean, scale, 1)
    return lambda x: snp.where(x < 0, -below(snp.maximum(-x, 0)), above(snp.maximum(x, 0)))


def _power(exponents: np.ndarray, mean: np.ndarray, scale: np.ndarray, shift: int) -> Function:
    """Return (p(x + shift) − mean) / scale, by the difference from c, about where p is the mean.

    p(y) − p(c) = c^λ (exp(λ log(y / c)) − 1) / λ: for a column whose values are far from 0 λ may
    be such that y^λ is no float32, and a difference of two has no digits.
    """
    zero = abs(exponents) < np.spacing(1.0)
    divisors = np.where(zero, 1, exponents)
    with np.errstate(all="ignore"):
        c = np.exp(np.where(zero, mean, np.log1p(exponents * mean) / divisors))
        c = np.where(np.isfinite(c) & (c > shift), c, 1)  # 1, where p is 0, if mean is out of reach
        logs = np.log(c)
        offset = (np.where(zero, logs, np.expm1(exponents * logs) / divisors) - mean) / scale
        slope = np.exp(exponents * logs) / divisors / scale

    def power(x: Array) -> Array:
        to = lambda constant: constant.astype(x.dtype)
        near = minus(x, c - shift) / to(c)
        far = (snp.log1p(x) if shift else snp.log(x)) - to(logs)
        difference = snp.where(abs(near) < 0.5, snp.log1p(near), far)
        change = snp.where(zero, difference, snp.expm1(to(exponents) * difference))
        return to(offset) + to(slope) * change

    return power


def _quantile_transformer(transformer: Fitted) -> Function:
    """Return the share of what was fitted that lies below, or the normal quantile of this share.

    Between two quantiles it grows linearly; at several that are equal it is the mean of the first's
    and the last's. The share above is computed as well: it has the digits of what is nearly 1.
    """
    quantiles = np.asarray(transformer.quantiles_, np.float64)
    references = np.asarray(transformer.references_, np.float64)
    normal = transformer.output_distribution == "normal"
    bound = _BOUND if normal else 0

    def shares(x: Array, exact: np.ndarray) -> tuple[Array, Array]:
        points, below, above = [a.astype(x.dtype) for a in (exact, references, 1 - references)]
        last = snp.maximum(snp.searchsorted(points, x, side="right", method=_ALL) - 1, 0)
        # The first of those equal to x, or the next one above it.
        following = snp.minimum(last + 1, len(points) - 1)
        equal = snp.asarray(np.searchsorted(points, points).astype(np.int32))[last]
        first = snp.where(snp.asarray(points)[last] == x, equal, following)
        to_low, to_high = [_minus_at(x, exact, place) for place in (last, first)]
        between = to_low - to_high
        apart = between > 0
        gap = snp.where(apart, between, 1)
        part, rest = [snp.where(apart, a / gap, 0.5) for a in (to_low, -to_high)]
        # Not from the bound on, which may be less than what two numbers of this dtype differ by.
        start = np.maximum(exact[0] + bound, np.nextafter(points[0], np.inf)).astype(x.dtype)
        end = np.minimum(exact[-1] - bound, np.nextafter(points[-1], -np.inf)).astype(x.dtype)
        found = []
        for share, at_start, at_end in ((below, 0, 1), (above, 1, 0)):
            inside = part * snp.asarray(share)[first] + rest * snp.asarray(share)[last]
            found.append(snp.where(x < start, at_start, snp.where(x > end, at_end, inside)))
        return found[0], found[1]

    def transform(x: Array) -> Array:
        columns = [shares(x[:, k], quantiles[:, k]) for k in range(quantiles.shape[1])]
        below, above = [snp.stack(parts, axis=1) for parts in zip(*columns, strict=True)]
        if normal:
            lower, upper = [special.ndtri(snp.maximum(a, _BOUND)) for a in (below, above)]
            below = snp.where(below < above, lower, -upper)
        return snp.where(snp.isnan(x), x, below)

    return transform


def _minus_at(x: Array, points: np.ndarray, places: Array) -> Array:
    """Return x − points[places], as ``minus`` does."""
    rounded = points.astype(x.dtype)
    rest = (points - rounded).astype(x.dtype)
    return x - snp.asarray(rounded)[places] - snp.asarray(rest)[places]


# Missing values


def _is_missing(transformer: Fitted) -> Callable[[Array], Array]:
    marker = transformer.missing_values
    if not isinstance(marker, numbers.Real):
        raise _refused(transformer, f"looks for {marker!r}, which is no number")
    return snp.isnan if np.isnan(float(marker)) else lambda x: x == float(marker)


def _missing_indicator(indicator: Fitted) -> Function:
    is_missing, places = _is_missing(indicator), np.asarray(indicator.features_)
    strict = indicator.error_on_new and indicator.features == "missing-only"

    def indicate(x: Array) -> Array:
        found = is_missing(x[:, places]).astype(x.dtype)
        others = np.setdiff1d(np.arange(x.shape[1]), places)
        if not strict or not others.size:
            return found
        return snp.where(is_missing(x[:, others]).any(axis=1, keepdims=True), np.nan, found)

    return indicate


def _simple_imputer(imputer: Fitted) -> Function:
    is_missing = _is_missing(imputer)
    if not all(isinstance(value, numbers.Real) for value in imputer.statistics_):
        raise _refused(imputer, "fills in values that are no numbers")
    values = np.asarray(imputer.statistics_, np.float64)
    # A column without a value has no statistic, and is left out.
    here = np.flatnonzero(imputer.keep_empty_features | ~np.isnan(values))

    def impute(x: Array) -> Array:
        x = x if len(here) == len(values) else x[:, here]
        return snp.where(is_missing(x), values[here].astype(x.dtype), x)

    if imputer.indicator_ is None:
        return impute
    return _beside([impute, _missing_indicator(imputer.indicator_)], [None, None])


# Products and projections


def _polynomial_features(features: Fitted) -> Function:
    powers = np.asarray(features.powers_)
    degree = max(1, powers.sum(axis=1).max())
    # Each product is one of as many columns as the degree, and a column of ones fills it up.
    factors = np.full((len(powers), degree), powers.shape[1])
    for row, exponents in zip(factors, powers, strict=True):
        columns = np.repeat(np.arange(len(exponents)), exponents)
        row[: len(columns)] = columns

    def products(x: Array) -> Array:
        filled = snp.concatenate([x, snp.ones_like(x[:, :1])], axis=1)
        result = filled[:, factors[:, 0]]
        for k in range(1, degree):
            result = result * filled[:, factors[:, k]]
        return result

    return products


def _projection(middle: np.ndarray | None, components: np.ndarray) -> Function:
    center = _affine(middle, None)
    components = np.asarray(components, np.float64).T
    return lambda x: center(x) @ components.astype(x.dtype)


def _pca(pca: Fitted) -> Function:
    components = np.asarray(pca.components_, np.float64)
    if pca.whiten:
        scale = np.sqrt(np.asarray(pca.explained_variance_, np.float64))
        components = components / np.maximum(scale, np.finfo(np.float64).eps)[:, None]
    return _projection(pca.mean_, components)


def _truncated_svd(svd: Fitted) -> Function:
    return _projection(None, svd.components_)


# Bins and categories


def _k_bins_discretizer(discretizer: Fitted) -> Function:
    edges = [np.asarray(column, np.float64)[1:-1] for column in discretizer.bin_edges_]
    ordinal = discretizer.encode == "ordinal"

    def bins(x: Array) -> Array:
        columns = []
        for k, column in enumerate(edges):
            values = x[:, k : k + 1]
            # Rounded as the rows were: an edge is often one of the numbers that were fitted.
            reached = (values >= column.astype(x.dtype)).astype(x.dtype)
            if not ordinal:
                # Bin k is the one whose lower edge is reached, and whose upper one is not.
                whole = snp.ones_like(values)
                reached = snp.concatenate([whole, reached, 0 * whole], axis=1)
                place = reached[:, :-1] - reached[:, 1:]
            else:
                place = reached.sum(axis=1, keepdims=True)
            columns.append(snp.where(snp.isnan(values), values, place))
        return snp.concatenate(columns, axis=1)

    return bins


def _categories(encoder: Fitted) -> list[np.ndarray]:
    for categories in encoder.categories_:
        if categories.dtype.kind not in "biuf":
            raise _refused(encoder, f"has categories that are no numbers, {categories[:3]}")
    return [np.asarray(categories, np.float64) for categories in encoder.categories_]


def _is_category(column: Array, categories: np.ndarray, caller: str) -> Array:
    """Return for each row, and each category, whether the row is of it: (rows, categories)."""
    known = categories.astype(column.dtype)
    same = np.flatnonzero(known[1:] == known[:-1])  # they are sorted
    if same.size:
        one, other = categories[same[0] : same[0] + 2]
        raise ValueError(
            f"pipeline_function: {caller} has the categories {one!r} and {other!r}, which are the "
            f"same {column.dtype}: give an example of float64 under st.enable_x64"
        )
    equal = column == known
    return equal | (snp.isnan(column) & np.isnan(known)) if np.isnan(known).any() else equal


def _frequent(encoder: Fitted, categories: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return for each column which of its categories have a place of their own."""
    if encoder.min_frequency is None and encoder.max_categories is None:
        return [np.ones(len(column), bool) for column in categories]
    return [
        np.ones(len(column), bool) if rare is None else ~np.isin(column, rare.astype(np.float64))
        for column, rare in zip(categories, encoder.infrequent_categories_, strict=True)
    ]


def _one_hot_encoder(encoder: Fitted) -> Function:
    categories = _categories(encoder)
    frequent = _frequent(encoder, categories)
    dropped = [None] * len(categories) if encoder.drop_idx_ is None else encoder.drop_idx_
    unknown = encoder.handle_unknown

    def encode_column(x: Array, k: int) -> Array:
        is_category = _is_category(x, categories[k], "OneHotEncoder")
        own = frequent[k]
        is_known = is_category.any(axis=1, keepdims=True)
        parts = [is_category[:, np.flatnonzero(own)]]
        if not own.all():
            rare = is_category[:, np.flatnonzero(~own)].any(axis=1, keepdims=True)
            parts.append(rare if unknown in ("error", "ignore") else rare | ~is_known)
        places = snp.concatenate(parts, axis=1).astype(x.dtype)
        if dropped[k] is not None:
            left_out = own[: dropped[k]].sum() if own[dropped[k]] else own.sum()
            places = places[:, np.delete(np.arange(places.shape[1]), left_out)]
        return snp.where(is_known, places, np.nan) if unknown == "error" else places

    def encode(x: Array) -> Array:
        columns = [encode_column(x[:, k : k + 1], k) for k in range(len(categories))]
        return snp.concatenate(columns, axis=1)

    return encode


def _ordinal_encoder(encoder: Fitted) -> Function:
    categories = _categories(encoder)
    codes = []
    for column, own in zip(categories, _frequent(encoder, categories), strict=True):
        missing = np.isnan(column)
        # A missing value comes last, has a code of its own, and is never counted as infrequent.
        places = np.where(own, np.cumsum(own) - 1, (own & ~missing).sum()).astype(np.float64)
        codes.append(np.where(missing, encoder.encoded_missing_value, places))
    unknown = np.nan if encoder.handle_unknown == "error" else encoder.unknown_value

    def encode(x: Array) -> Array:
        columns = []
        for k, column in enumerate(codes):
            is_category = _is_category(x[:, k : k + 1], categories[k], "OrdinalEncoder")
            code = snp.where(is_category, column.astype(x.dtype), 0).sum(axis=1, keepdims=True)
            columns.append(snp.where(is_category.any(axis=1, keepdims=True), code, unknown))
        return snp.concatenate(columns, axis=1)

    return encode


# Functions


def _function_transformer(transformer: Fitted) -> Function:
    function = transformer.func
    if function is None:
        return _same
    name = getattr(function, "__name__", type(function).__name__)
    ours = getattr(snp, name, None)
    is_ufunc = isinstance(function, np.ufunc) and function.nin == function.nout == 1
    if not is_ufunc or getattr(np, name, None) is not function or ours is None:
        raise _refused(transformer, f"calls {name}, which is no ufunc that stretto.numpy has")
    if transformer.kw_args:
        raise _refused(transformer, f"calls {name} with arguments by keyword")
    return lambda x: ours(x).astype(x.dtype)


_RULES: dict[str, Callable[[Fitted], Function]] = {
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _feature_union,
    "FunctionTransformer": _function_transformer,
    "KBinsDiscretizer": _k_bins_discretizer,
    "MaxAbsScaler": _max_abs_scaler,
    "MinMaxScaler": _min_max_scaler,
    "MissingIndicator": _missing_indicator,
    "Normalizer": _normalizer,
    "OneHotEncoder": _one_hot_encoder,
    "OrdinalEncoder": _ordinal_encoder,
    "PCA": _pca,
    "Pipeline": _pipeline,
    "PolynomialFeatures": _polynomial_features,
    "PowerTransformer": _power_transformer,
    "QuantileTransformer": _quantile_transformer,
    "RobustScaler": _robust_scaler,
    "SimpleImputer": _simple_imputer,
    "StandardScaler": _standard_scaler,
    "TruncatedSVD": _truncated_svd,
}
"""What each class of transformers does, by its name."""
