"""Fitted pipelines as functions, run by onnxruntime, beside what scikit-learn computes."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)  # fmt: skip

import stretto as st
from stretto.ensemble import EnsembleClassifier, EnsembleRegressor, pipeline_function
from stretto.ensemble.estimators.pipelines import _function_of
from tests.export.running import exported, onnx, operators, run

RNG = np.random.default_rng(0)
N = 200
X = np.stack(
    [
        RNG.normal(2000, 5, N),  # large beside what it varies by, as years are
        RNG.exponential(1, N),
        RNG.integers(0, 4, N),
        RNG.normal(size=N),
        RNG.integers(-3, 9, N) / 10,
        np.full(N, 7.0),
    ],
    axis=1,
)
# As float32 has them, so that rounding the rows is no part of what is compared.
X = X.astype(np.float32).astype(np.float64)
HOLES = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
EMPTY = np.where(np.arange(6) == 1, np.nan, HOLES)
CODES, CODES_WITH_HOLES = X[:, [2, 4]], HOLES[:, [2, 4]]
OFTEN = max(CODES[:, 1], key=list(CODES[:, 1]).count)
Y = X[:, 1] + X[:, 3] > 0.8
REGRESSOR = EnsembleRegressor(2, hidden=(8,), epochs=3, random_state=0)
CLASSIFIER = EnsembleClassifier(2, hidden=(8,), epochs=3, random_state=0)


def onehot(**options):
    return OneHotEncoder(sparse_output=False, **options)


def columns(parts, **options):
    return ColumnTransformer([(str(k), *part) for k, part in enumerate(parts)], **options)


CASES = [
    (StandardScaler(), X),
    (StandardScaler(), HOLES),
    (StandardScaler(with_mean=False), X),
    (StandardScaler(with_std=False), X),
    (MinMaxScaler(), X),
    (MinMaxScaler((-1, 3), clip=True), X),
    (MaxAbsScaler(), X),
    (RobustScaler(), HOLES),
    (RobustScaler(with_centering=False, unit_variance=True), X),
    (RobustScaler(with_scaling=False), X),
    (Normalizer(), X[:, 1:] * (X[:, 2:3] > 0)),
    (Normalizer("l1"), X[:, 1:]),
    (Normalizer("max"), X[:, 1:]),
    (QuantileTransformer(n_quantiles=50), HOLES),
    (QuantileTransformer(n_quantiles=200, output_distribution="normal"), HOLES[:, 1:]),
    (PowerTransformer(), HOLES[:, :5]),
    (PowerTransformer(standardize=False), X[:, 1:5]),
    (PowerTransformer("box-cox"), X[:, :2] + 0.01),
    (PowerTransformer("box-cox", standardize=False), X[:, 1:2] + 0.01),
    (SimpleImputer(), HOLES),
    (SimpleImputer(add_indicator=True), EMPTY),
    (SimpleImputer(strategy="median", keep_empty_features=True), EMPTY),
    (SimpleImputer(strategy="constant", fill_value=-3), HOLES),
    (SimpleImputer(strategy="most_frequent", missing_values=0, add_indicator=True), X),
    (MissingIndicator(), HOLES),
    (MissingIndicator(features="all"), HOLES),
    (PolynomialFeatures(3), X[:, 1:]),
    (PolynomialFeatures((2, 3), interaction_only=True), X[:, 1:]),
    (PolynomialFeatures(2, include_bias=False), X[:, 1:]),
    (PolynomialFeatures(0), X),
    (PCA(3), X),
    (PCA(3, whiten=True), X),
    (TruncatedSVD(2), X),
    (KBinsDiscretizer(4, encode="ordinal"), X[:, :5]),
    (KBinsDiscretizer(6, encode="onehot-dense", strategy="uniform"), X[:, :5]),
    (onehot(), CODES),
    (onehot(drop="first"), CODES),
    (onehot(drop="if_binary"), np.stack([X[:, 2], X[:, 2] > 1], 1)),
    (onehot(max_categories=5), CODES_WITH_HOLES),
    (onehot(max_categories=5, drop="first"), CODES),
    (onehot(min_frequency=20, drop=[3, OFTEN]), CODES),
    (OrdinalEncoder(), CODES),
    (OrdinalEncoder(max_categories=4, encoded_missing_value=-5), CODES_WITH_HOLES),
    (SelectKBest(k=2), X[:, :5]),
    (SelectFromModel(LinearRegression()), X),
    (VarianceThreshold(0.5), X),
    (FunctionTransformer(), X),
    (FunctionTransformer(np.log1p), X[:, 1:2]),
    (FunctionTransformer(np.isnan), HOLES),
    (make_pipeline(SimpleImputer(), "passthrough", StandardScaler()), HOLES[:, 1:]),
    (
        FeatureUnion(
            [("a", StandardScaler()), ("b", PCA(2)), ("c", "drop"), ("d", "passthrough")],
            transformer_weights={"b": 0.5},
        ),
        X,
    ),
    (
        columns(
            [
                (StandardScaler(), [0, 1]),
                (onehot(), slice(2, 3)),
                (StandardScaler(), []),
                ("drop", [5]),
            ],
            remainder="passthrough",
            transformer_weights={"0": 2.0},
        ),
        X,
    ),
    (
        columns(
            [
                ("passthrough", [-2]),
                (MinMaxScaler(), np.array([False, True, False, True, False, False])),
                (make_pipeline(PCA(2), StandardScaler()), lambda x: [1, 3, 4]),
            ]
        ),
        X,
    ),
]


@pytest.mark.filterwarnings("ignore:Skipping features without any observed values:UserWarning")
@pytest.mark.filterwarnings("ignore:Bins whose width are too small:UserWarning")
@pytest.mark.filterwarnings("ignore:Features .* are constant:UserWarning")
@pytest.mark.filterwarnings("ignore:overflow encountered in square:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered in divide:RuntimeWarning")
@pytest.mark.parametrize(("transformer", "x"), CASES, ids=[repr(t)[:60] for t, _ in CASES])
def test_a_transformer_in_a_file(transformer, x):
    fitted = clone(transformer).fit(x, Y)
    rows = x.astype(np.float32)
    model = exported(_function_of(fitted), rows[:3], dynamic_axes=({0: "rows"},))
    (got,) = run(model, [rows])
    np.testing.assert_allclose(got, fitted.transform(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("calibrated", [False, True])
def test_a_classifier_behind_its_steps(calibrated):
    pipeline = make_pipeline(
        columns(
            [
                (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), [0, 1, 3]),
                (onehot(handle_unknown="ignore"), [2]),
                (PolynomialFeatures(2), [5]),
            ]
        ),
        clone(CLASSIFIER),
    ).fit(np.where(np.isin(np.arange(6), [1, 3]), HOLES, X), Y)
    if calibrated:
        pipeline[-1].calibrate(pipeline[:-1].transform(X), Y)
    function = pipeline_function(pipeline)
    model = exported(function, X[:3], dynamic_axes=({0: "rows"},))
    assert [i.name for i in model.graph.input] == ["X"]
    for new in (X, np.where(np.isin(np.arange(6), [0, 2]), HOLES, X), X[:1]):
        got = dict(zip([o.name for o in model.graph.output], run(model, [new]), strict=True))
        want = pipeline.predict_proba(new)
        np.testing.assert_allclose(got["probabilities"], want, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(pipeline.classes_[got["place"]], pipeline.predict(new))
        np.testing.assert_allclose(function(new)["members"], got["members"], atol=1e-6)


def test_a_regressor_in_a_pipeline_in_a_pipeline():
    inner = make_pipeline(VarianceThreshold(), clone(REGRESSOR))
    pipeline = make_pipeline(RobustScaler(), inner).fit(X, X[:, 3] + 1e4)
    inner[-1].calibrate(pipeline[:-1].transform(X)[:, :5], X[:, 3] + 1e4)
    model = exported(pipeline_function(pipeline, coverage=0.8), X[:3], dynamic_axes=({0: "n"},))
    got = dict(zip([o.name for o in model.graph.output], run(model, [X]), strict=True))
    mean, lower, upper = pipeline.predict(X, return_interval=0.8)
    for name, want in (("mean", mean), ("lower", lower), ("upper", upper)):
        np.testing.assert_allclose(got[name], want, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:overflow encountered in square:RuntimeWarning")
def test_rows_of_float64_and_of_integers():
    x = X[:, [0, 1, 3]]
    pipeline = make_pipeline(
        PowerTransformer(), QuantileTransformer(n_quantiles=50), clone(REGRESSOR)
    ).fit(x, X[:, 3])
    with st.enable_x64():
        model = exported(_function_of(pipeline[:-1]), x[:3], dynamic_axes=({0: "rows"},))
        (got,) = run(model, [x])
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, pipeline[:-1].transform(x), rtol=1e-9, atol=1e-9)
    whole = np.arange(24).reshape(8, 3)
    model = exported(pipeline_function(pipeline), whole.astype(np.int32))
    got = dict(zip([o.name for o in model.graph.output], run(model, [whole]), strict=True))
    np.testing.assert_allclose(got["mean"], pipeline.predict(whole), atol=1e-5)


def test_an_estimator_alone_keeps_the_digits_of_large_columns():
    fitted = clone(REGRESSOR).fit(X, X[:, 3])
    model = exported(fitted.function(), X.astype(np.float32))
    got = dict(zip([o.name for o in model.graph.output], run(model, [X]), strict=True))
    np.testing.assert_allclose(got["mean"], fitted.predict(X), rtol=1e-5, atol=1e-6)


def test_what_scikit_learn_refuses_is_nan():
    unknown = np.array([[9.0], [np.nan], [1.0]], np.float32)
    seen = np.array([[0.0], [1.0], [2.0]])
    for encoder in (onehot(), OrdinalEncoder()):
        got = np.asarray(_function_of(encoder.fit(seen))(st.numpy.asarray(unknown)))
        assert np.isnan(got[:2]).all()
        np.testing.assert_array_equal(got[2:], encoder.transform([[1.0]]))
    for encoder in (
        onehot(handle_unknown="ignore"),
        onehot(handle_unknown="infrequent_if_exist", max_categories=2),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    ):
        got = _function_of(encoder.fit(seen))(st.numpy.asarray(unknown))
        np.testing.assert_array_equal(got, encoder.transform(unknown.astype(float)))
    rows = st.numpy.asarray([[-1.0], [np.nan], [0.5]])
    for transformer in (
        PowerTransformer("box-cox").fit(seen + 1),
        KBinsDiscretizer(2, encode="onehot-dense", strategy="uniform").fit(seen),
    ):
        got = np.asarray(_function_of(transformer)(rows))
        assert np.isnan(got[1]).all() and np.isfinite(got[2]).all()
    assert np.isnan(_function_of(PowerTransformer("box-cox").fit(seen + 1))(rows)[0]).all()
    indicator = MissingIndicator().fit([[np.nan, 1.0], [1.0, 1.0]])
    got = _function_of(indicator)(st.numpy.asarray([[np.nan, 0], [0, np.nan]]))
    np.testing.assert_array_equal(got, [[1], [np.nan]])


def test_numbers_beyond_what_was_fitted():
    far = np.array([[-1e3], [0.0], [1e3], [1e6]])
    for transformer in (
        QuantileTransformer(n_quantiles=20),
        QuantileTransformer(n_quantiles=20, output_distribution="normal"),
        PowerTransformer(),
        KBinsDiscretizer(3, encode="ordinal", strategy="uniform"),
        MinMaxScaler(clip=True),
    ):
        fitted = transformer.fit(X[:, 3:4])
        got = _function_of(fitted)(st.numpy.asarray(far, np.float32))
        np.testing.assert_allclose(got, fitted.transform(far), rtol=2e-5)


def test_numbers_on_an_edge_stay_there_when_they_are_rounded():
    numbers = np.arange(1, 31)[:, None] / 10  # half of them are more as float64, half less
    for transformer in (
        KBinsDiscretizer(10, encode="ordinal", strategy="uniform"),
        KBinsDiscretizer(9, encode="onehot-dense"),
        OrdinalEncoder(),
        onehot(),
    ):
        fitted = transformer.fit(numbers)
        got = _function_of(fitted)(st.numpy.asarray(numbers, np.float32))
        np.testing.assert_array_equal(got, fitted.transform(numbers))


def test_the_steps_are_few_nodes():
    scaler = StandardScaler().fit(X)
    model = exported(_function_of(scaler), X[:3].astype(np.float32), dynamic_axes=({0: "rows"},))
    assert sum(operators(model).values()) <= 4
    quantiles = QuantileTransformer(n_quantiles=200).fit(X[:, :1])
    model = exported(_function_of(quantiles), X[:3, :1].astype(np.float32))
    assert sum(operators(model).values()) < 80


def test_other_files_take_pipelines_too(tmp_path):
    pipeline = make_pipeline(StandardScaler(), SelectKBest(k=2), clone(REGRESSOR)).fit(X[:, :5], Y)
    function = pipeline_function(pipeline)
    st.export.program(function, X[:3, :5], dynamic_axes=({0: "n"},)).save(tmp_path / "pipeline")
    again = st.export.load(tmp_path / "pipeline")
    np.testing.assert_allclose(again(X[:, :5])["mean"], pipeline.predict(X[:, :5]), atol=1e-5)


class Doubled(StandardScaler):
    def transform(self, X, copy=None):
        return 2 * super().transform(X, copy)


def plus(x):
    return x + 1


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (KNNImputer(), "KNNImputer is none of the transformers that are written out. Write"),
        (Doubled(), "Doubled is none of the transformers"),
        (FunctionTransformer(plus), "FunctionTransformer calls plus, which is no ufunc that"),
        (FunctionTransformer(expit), "calls expit, which is no ufunc"),
        (FunctionTransformer(np.sqrt, kw_args={"where": True}), "calls sqrt with arguments by"),
        (columns([(KNNImputer(), [0])]), r"pipeline_function\(pipeline\[1:\]\)\(written\(rows\)"),
    ],
)
def test_transformers_that_are_refused(step, said):
    with pytest.raises(TypeError, match=said):
        pipeline_function(make_pipeline(step, _fitted()).fit(abs(X), Y))


def _fitted():
    return EnsembleRegressor(1, hidden=(), epochs=1, random_state=0)


def test_text_is_refused():
    words = np.array([["a", "b"]] * 20 + [["c", "d"]] * 20, object)
    for step, said in (
        (onehot(), "OneHotEncoder has categories that are no numbers, .*'a'"),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder()), "fills in"),
        (make_pipeline(SimpleImputer(strategy="most_frequent", missing_values="a"), onehot()),
         "SimpleImputer looks for 'a', which is no number"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=said):
            pipeline_function(make_pipeline(step, _fitted()).fit(words, np.arange(40)))


def test_what_is_no_pipeline_of_ours():
    fitted = _fitted().fit(X, Y)
    with pytest.raises(TypeError, match=r"got EnsembleRegressor; an estimator alone has function"):
        pipeline_function(fitted)
    with pytest.raises(TypeError, match=r"last step must be .*, got LinearRegression"):
        pipeline_function(make_pipeline(StandardScaler(), LinearRegression()))
    with pytest.raises(NotFittedError, match="StandardScaler"):
        pipeline_function(make_pipeline(StandardScaler(), fitted))
    with pytest.raises(NotFittedError):
        pipeline_function(make_pipeline(StandardScaler().fit(X), _fitted()))
    function = pipeline_function(make_pipeline(StandardScaler().fit(X), fitted))
    with pytest.raises(ValueError, match=r"expected rows, \(rows, 6\), .* of shape \(200, 1\)"):
        function(X[:, :1])
    assert onnx is not None
    with pytest.raises(TypeError, match=r"got Pipeline: export what st.ensemble.pipeline_function"):
        st.export.onnx(make_pipeline(StandardScaler().fit(X), fitted), X)


def test_categories_that_are_equal_in_float32():
    numbers = np.array([[2.0**24], [2.0**24 + 1]])
    function = _function_of(OrdinalEncoder().fit(numbers))
    with pytest.raises(ValueError, match=r"16777216.0\) and .*16777217.0\), which are the same"):
        function(st.numpy.asarray(numbers, np.float32))
    with st.enable_x64():
        np.testing.assert_array_equal(function(st.numpy.asarray(numbers)), [[0], [1]])


@pytest.mark.parametrize("chosen", [["c", "a"], slice("b", "d"), make_column_selector("a|e")])
def test_columns_by_name(chosen):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("abcdef"))
    fitted = columns([(StandardScaler(), chosen)], remainder="passthrough").fit(table)
    got = _function_of(fitted)(st.numpy.asarray(X, np.float32))
    np.testing.assert_allclose(got, fitted.transform(table), rtol=1e-5, atol=1e-5)
