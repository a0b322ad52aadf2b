"""Modules of JAX's names: the finder that ``import`` asks, and the table of where names come from.

A module ``jax.a.b`` is a view: its names are looked up, when first asked for, in its home. That is
the row ``a.b`` of the table, and otherwise the module ``stretto.a.b``, for those in ``SAME``.
``jax`` itself is ``root``.

A row is the path of a module below ``jax``, with the modules that its names come from: those of
``stretto.compat.jax`` after a point, ``primitives`` for operations as jaxprs name them. ``a>b`` is
``a`` under the name ``b``, and ``*`` every name that no source before has, ``*draws`` so that
functions draw as JAX's do, and ``*NAMES`` every name of a mapping. A row that is one module's ``*``
is that module.

Stretto draws narrow floats in float32 and rounds them last, and has a formula of its own for the
tails of the truncated normal distribution. JAX does neither, and libraries written for it may hold
its numbers to the last bit.

>>> from stretto import random
>>> from stretto.compat.jax.modules import names_of, with_jax_draws
>>> get, names = names_of("stretto.numpy")
>>> get("pi") > 3
True
>>> key = random.PRNGKey(0x23456789)
>>> random.normal(key, (2,), "bfloat16"), with_jax_draws(random.normal)(key, (2,), "bfloat16")
(Array([0.115723, 0.9375], dtype=bfloat16), Array([-0.171875, -1.83594], dtype=bfloat16))
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import itertools
import pathlib
import sys
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from stretto._engine.core.interpreter import ARRAY_METHODS
from stretto.compat.jax.jaxprs.operations import NAMES, primitive_of
from stretto.random.draw_arguments import draws_as_jax


def names_of(home: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a module that has this module's names.

    Args:
        home: the module.
    """

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(home), name)

    return get, lambda: sorted(dir(importlib.import_module(home)))


_WITHOUT_DRAWS = ("stretto.random.keys", "stretto.random.streams")


@functools.cache
def with_jax_draws(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function draw as JAX does, and the function that it returns, if it returns one.

    Args:
        fun: a draw, or what makes an initializer.
    """

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        with draws_as_jax():
            out = fun(*args, **kwargs)
        return with_jax_draws(out) if isinstance(out, FunctionType) else out

    return call


def drawing_names_of(home: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` for this module's names, as draws.

    Args:
        home: the module.
    """
    get, names = names_of(home)

    def draws(name: str) -> Any:
        value = get(name)
        if isinstance(value, FunctionType) and value.__module__ not in _WITHOUT_DRAWS:
            return with_jax_draws(value)
        return value

    return draws, names


_KERNELS = (
    "kernels written for one kind of device are not part of Stretto: write the function in "
    "jax.numpy"
)
_SAVING = "arrays are saved with stretto.save, or by a library of the user's"
_TENSORFLOW = "there is no way to TensorFlow: export with jax.jit(f).lower(...)"

REFUSED = {
    "experimental.array_serialization": _SAVING,
    "experimental.array_serialization.serialization": _SAVING,
    "experimental.array_serialization.tensorstore_impl": _SAVING,
    "experimental.jax2tf": _TENSORFLOW,
    "experimental.pallas": _KERNELS,
    "experimental.pallas.ops": _KERNELS,
    "experimental.pallas.ops.gpu": _KERNELS,
    "experimental.pallas.ops.tpu": _KERNELS,
    "experimental.pallas.gpu": _KERNELS,
    "experimental.pallas.mosaic_gpu": _KERNELS,
    "experimental.pallas.tpu": _KERNELS,
    "experimental.pallas.triton": _KERNELS,
}
"""The reasons, by the path below ``jax``, why it is refused, and what to do instead."""


class RefusedName:
    """Stands for something of JAX's that Stretto does not have; says so when it is called.

    >>> RefusedName("jax.experimental.pallas", "write it in jax.numpy").pallas_call(1)
    Traceback (most recent call last):
    NotImplementedError: jax.experimental.pallas.pallas_call is not in Stretto: write it in jax...
    """

    def __init__(self, name: str, why: str) -> None:
        self.__name__ = name
        self._why = why

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return RefusedName(f"{self.__name__}.{name}", self._why)

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(f"{self.__name__} is not in Stretto: {self._why}")

    def __repr__(self) -> str:
        return f"<{self.__name__}, which is not in Stretto>"


Names = tuple[Callable[[str], Any], Callable[[], list[str]]]
"""A module's ``__getattr__`` and ``__dir__``."""

_TABLE = """
_src
_src.ad_util
    .jaxprs.own: SymbolicZero Zero add_jaxvals add_jaxvals_p zeros_like_aval
        instantiate_zeros>instantiate
    primitives: stop_gradient_p
_src.checkify
    .checks: *
_src.compiler
    .runtime: backend_compile_and_load compile_or_get_cached
_src.core
    .core: *
_src.dispatch
    stretto.debug: effects_barrier>wait_for_tokens
_src.distributed
    .runtime: global_state
_src.earray
    stretto.random.key_arrays: KeyArray>EArray
_src.interpreters
_src.interpreters.pxla
    .runtime: global_result_handlers
_src.literals
    .arrays: LiteralArray TypedComplex TypedFloat TypedInt TypedNdArray
_src.pjit
    .calls: jit jit>pjit with_sharding_constraint
    primitives: jit_p jit_p>pjit_p sharding_constraint_p
_src.state
    stretto._engine.higher_order.refs: View>TransformedRef
    .avals: AbstractRef
_src.state.types
    stretto._engine.higher_order.refs: View>TransformedRef
    .avals: AbstractRef
_src.traceback_util
    .runtime: _exclude_paths api_boundary include_frame register_exclusion
_src.tree_util
    .tree_util: ENTRIES>_registry *
_src.xla_bridge
    stretto._engine.xla.device: default_backend process_index
    .calls: STARTED>_backends device_count devices local_devices
    .runtime: backends get_backend
ad_checkpoint
    stretto: checkpoint_policies
    stretto._engine.api.autodiff.checkpoint: checkpoint print_saved_residuals checkpoint>remat
    stretto._engine.ops.identities: checkpoint_name
api_util
    .util: argnums_partial debug_info donation_vector flatten_axes flatten_fun
        flatten_fun_nokwargs fun_signature infer_argnums_and_argnames safe_map safe_zip
        shaped_abstractify
core
    .core: AbstractToken AbstractValue Atom DropVar Effects OpaqueTraceState ShapedArray Trace
        Tracer abstract_token concrete_or_error ensure_compile_time_eval eval_jaxpr find_top_trace
        get_aval get_opaque_trace_state is_concrete is_constant_shape mapped_aval physical_aval
        pytype_aval_mappings raise_to_shaped token trace_state_clean typeof unmapped_aval
        valid_jaxtype
custom_batching
    stretto._engine.higher_order.custom_vmap: custom_vmap sequential_vmap
custom_derivatives
    stretto._engine.api.autodiff.custom_gradient: closure_convert custom_gradient
    stretto._engine.higher_order.linear_call: linear_call
    stretto._engine.higher_order.custom_function: CustomVJPPrimal custom_vjp_primal_tree_values
        zero_from_primal
    .calls: custom_jvp custom_vjp
    .jaxprs.own: SymbolicZero
    primitives: custom_jvp_call_p custom_vjp_call_p
debug
    .calls: breakpoint debug_callback>callback debug_print>print
    stretto.debug: *
dlpack
    stretto.numpy: from_dlpack
    .arrays: is_supported_dtype to_dlpack
dtypes
    ml_dtypes: bfloat16
    numpy: dtype>DType
    .arrays: ExtendedDType supports_inf
    stretto.dtypes: *
errors
    builtins: RuntimeError>JAXRuntimeError RuntimeError>JaxRuntimeError
    .arrays: JAXIndexError JAXTypeError KeyReuseError
    stretto.errors: *
example_libraries
example_libraries.optimizers
    .example_libraries: JoinPoint Optimizer OptimizerState Schedule adagrad adam adamax clip_grads
        constant exponential_decay inverse_time_decay l2_norm make_schedule momentum nesterov
        optimizer pack_optimizer_state piecewise_constant polynomial_decay rmsprop
        rmsprop_momentum sgd sm3 unpack_optimizer_state
example_libraries.stax
    .example_libraries: AvgPool BatchNorm Conv Conv1DTranspose ConvTranspose Dense Dropout Elu Exp
        FanInConcat FanInSum FanOut Flatten Gelu GeneralConv GeneralConvTranspose Identity Layer
        LeakyRelu LogSoftmax MaxPool Relu Selu Sigmoid Softmax Softplus SumPool Tanh elementwise
        elu gelu glorot glorot_normal leaky_relu log_softmax logsoftmax normal ones parallel randn
        relu selu serial shape_dependent sigmoid softmax softplus standardize zeros
experimental
    stretto.typing: Ref>MutableArray
    .calls: io_callback
    .experimental: disable_x64
    .hijax: cur_qdd
    .root: enable_x64
experimental.checkify
    .checks: *
experimental.compilation_cache
experimental.compilation_cache.compilation_cache
    .experimental: reset_cache set_cache_dir
experimental.custom_partitioning
    .shardings: ArrayMapping CompoundFactor SdyShardingRule custom_partitioning
experimental.hijax
    .avals: AbstractRef AbstractValue ShapedArray
    .hijax: AvalMutableQDD AvalQDD HiPrimitive HiPspec HiType MutableHiType VJPHiPrimitive
        aval_method aval_property control_flow_allowed_effects register_hitype
    .jaxprs.own: Zero instantiate_zeros is_undefined_primal
    stretto._engine.higher_order.refs: View>TransformedRef
experimental.jet
    stretto: jet
experimental.layout
    .experimental: Format Layout
experimental.mesh_utils
    .shardings: create_device_mesh
experimental.multihost_utils
    .shardings: assert_equal global_array_to_host_local_array host_local_array_to_global_array
        reached_preemption_sync_point
    stretto.distributed: broadcast_one_to_all process_allgather sync_global_devices
experimental.ode
    .ode: odeint
experimental.pjit
    .calls: jit>pjit
    stretto.lax: with_sharding_constraint
experimental.shard_map
    .shardings: shard_map
experimental.sparse
    .experimental: BCOO BCSR COO CSC CSR JAXSparse linalg sparsify
experimental.xla_metadata
    .experimental: set_xla_metadata
export
    .export: DisabledSafetyCheck Exported SymbolicScope default_export_platform deserialize export
        is_symbolic_dim maximum_supported_calling_convention_version
        minimum_supported_calling_convention_version register_namedtuple_serialization
        register_pytree_node_serialization shape_and_dtype_jax_array symbolic_args_specs
        symbolic_shape
extend
extend.backend
    stretto: clear_caches>clear_backends
    .runtime: backends get_backend
extend.core
    .core: AbstractToken CallPrimitive ClosedJaxpr DebugInfo DropVar Effect Effects Jaxpr JaxprEqn
        JaxprTypeError Literal Primitive Token TraceTag Var call_impl check_jaxpr
        concrete_or_error find_top_trace gensym get_opaque_trace_state jaxpr_as_fun
        jaxprs_in_params mapped_aval new_jaxpr_eqn no_effects nonempty_axis_env_DO_NOT_USE
        primal_dtype_to_tangent_dtype set_current_trace subjaxprs take_current_trace unmapped_aval
        unsafe_am_i_under_a_jit_DO_NOT_USE unsafe_am_i_under_a_vmap_DO_NOT_USE
        unsafe_get_axis_names_DO_NOT_USE valid_jaxtype
extend.core.primitives
    primitives: *
extend.linear_util
    .util: DebugInfo Store StoreException WrappedFun transformation transformation2
        transformation_with_aux transformation_with_aux2 wrap_init
extend.random
    .runtime: define_prng_impl
    stretto.random.key_arrays: Implementation>PRNGImpl
extend.source_info_util
    .runtime: register_exclusion
flatten_util
    .tree_util: ravel_pytree
interpreters
interpreters.ad
    .avals: ShapedArray get_aval
    .jaxprs.own: CustomVJPException JVPTracer SymbolicZero UndefinedPrimal Zero add_jaxvals
        add_jaxvals_p add_tangents defbilinear defjvp defjvp2 deflinear deflinear2
        get_primitive_transpose instantiate_zeros is_undefined_primal primitive_jvps
        primitive_transposes zeros_like_aval
    .jaxprs.primitive: Primitive
interpreters.batching
    .jaxprs.own: AxisData BatchTracer axis_primitive_batchers bdim_at_front broadcast
        defbroadcasting defvectorized fancy_primitive_batchers not_mapped primitive_batchers
interpreters.mlir
    .jaxprs.own: LoweringRuleContext ModuleContext emit_python_callback ir lower_fun lowerings
        register_lowering
interpreters.partial_eval
    .avals: get_aval
    .jaxprs.jaxpr: Jaxpr
    .jaxprs.making: DynamicJaxprTracer JaxprTracer PartialVal dce_jaxpr trace_to_jaxpr_dynamic
        trace_to_jaxpr_nounits
interpreters.xla
    .runtime: apply_primitive canonicalize_dtype_handlers
lax
    .keys: top_k *LAX_TAKING_KEYS
    .calls: with_sharding_constraint
    primitives: *
    stretto.lax: *
lax.linalg
    primitives: *
    stretto.lax.linalg: *
lib
    .root: __version__
lib.xla_extension
    .tree_util: PyTreeDef
    builtins: RuntimeError>XlaRuntimeError
monitoring
    .runtime: clear_event_listeners record_event record_event_duration_secs record_event_time_span
        record_scalar register_event_duration_secs_listener register_event_listener
        register_event_time_span_listener register_scalar_listener
        unregister_event_duration_listener unregister_event_listener
        unregister_event_time_span_listener unregister_scalar_listener
nn
    .nn: *
nn.initializers
    .initializers: *draws
numpy
    .numpy: *
numpy.linalg
    stretto.numpy.linalg: *
ops
    stretto._engine.ops.index.segments: segment_max segment_min segment_prod segment_sum
profiler
    .runtime: StepTraceAnnotation device_memory_profile save_device_memory_profile start_server
        stop_server
    stretto.profiler: *
random
    .keys: PRNGKey choice key permutation
    stretto.random: *draws
ref
    .arrays: addupdate empty_ref free_ref get new_ref set swap
    stretto: freeze
    stretto.typing: Ref
    .avals: AbstractRef
scipy.signal
    .arrays: convolve convolve2d correlate correlate2d fftconvolve
    stretto.scipy.signal: *
sharding
    .shardings: AbstractMesh AxisType auto_axes explicit_axes get_abstract_mesh reshard
    stretto.sharding: set_mesh>use_mesh *
stages
    stretto._engine.api.jit.jit: Jitted>Wrapped
    stretto._engine.api.jit.stages: ArgInfo Compiled Lowered TracedCall>Traced
    collections.abc: Mapping>CompilerOptions
test_util
    .gradients: check_grads check_jvp check_vjp
tree
    .tree_util: flatten_one_level tree_all>all tree_broadcast>broadcast
        tree_flatten>flatten tree_flatten_with_path>flatten_with_path tree_leaves>leaves
        tree_leaves_with_path>leaves_with_path tree_map>map tree_map_with_path>map_with_path
        tree_reduce>reduce tree_reduce_associative>reduce_associative tree_structure>structure
        tree_transpose>transpose tree_unflatten>unflatten
    stretto.tree: static
tree_util
    .tree_util: *
typing
    typing: Any>ExtendedDType
    stretto.typing: DTypeLike
    .arrays: ArrayLike Shape
util
    .util: HashableFunction HashablePartial cache concatenate curry merge_lists partition_list
        safe_map safe_zip split_dict split_list subvals toposort unzip2 unzip3 weakref_lru_cache
        wraps
version
    .root: __version__ __version_info__
"""


def _rows() -> dict[str, dict[str, list[str]]]:
    rows: dict[str, dict[str, list[str]]] = {}
    row: dict[str, list[str]] = {}
    names: list[str] = []
    for line in _TABLE.split("\n"):
        if line and line[0] != " ":
            row = rows[line] = {}
        for word in line.split() if line[:1] == " " else ():
            if word[-1] == ":":
                names = row[f"{__package__}{word[:-1]}" if word[0] == "." else word[:-1]] = []
            else:
                names.append(word)
    return rows


ROWS = _rows()
"""The names that come from each module, by path."""


@functools.cache
def module_of(path: str) -> ModuleType | None:
    """Make the module of a row; None where the table has none.

    >>> module_of("experimental.jet").jet.__name__
    'jet'
    """
    row = ROWS.get(path)
    if row is None:
        return None
    if [*row.values()] == [["*"]] and "primitives" not in row:
        return importlib.import_module(*row)
    module = ModuleType(f"jax.{path}", f"``jax.{path}``.")
    homes = {
        new or old: (source, old)
        for source, names in row.items()
        for old, _, new in [name.partition(">") for name in names if name[0] != "*"]
    }
    stars = [_every(source, name[1:]) for source in row for name in row[source] if name[0] == "*"]

    def get(name: str) -> Any:
        if name == "__all__" and (homes or not stars):
            return [name for name in homes if not name.startswith("_")]
        if name not in homes:
            return _first(stars, name)
        source, old = homes[name]
        if source == "primitives":
            value = primitive_of(old.removesuffix("_p"))
        else:
            value = getattr(importlib.import_module(source), old)
        vars(module)[name] = value
        return value

    def names() -> list[str]:
        return sorted({*homes, *itertools.chain.from_iterable(every() for _, every in stars)})

    vars(module).update(__getattr__=get, __dir__=names)
    return module


def _every(source: str, form: str) -> Names:
    """Return how all names of a source are read and listed."""
    if source == "primitives":
        return _primitive, lambda: [f"{name}_p" for name in NAMES]
    if form == "draws":
        return drawing_names_of(source)
    if form:
        values = getattr(importlib.import_module(source), form)
        return functools.partial(_entry, values), lambda: [*values]
    return names_of(source)


def _primitive(name: str) -> Any:
    if name.startswith("__") or not name.endswith("_p"):
        raise AttributeError(name)
    return primitive_of(name.removesuffix("_p"))


def _entry(values: dict[str, Any], name: str) -> Any:
    if name not in values:
        raise AttributeError(name)
    return values[name]


def _first(sources: list[Names], name: str) -> Any:
    """Return the value of a name from the first source that has it."""
    for get, _ in sources[:-1]:
        try:
            return get(name)
        except AttributeError:
            continue
    if not sources:
        raise AttributeError(name)
    return sources[-1][0](name)


VERSION = "0.10.2"
"""The version of JAX whose names are presented."""

ROOT = "stretto.compat.jax.root"
SAME = frozenset({"distributed", "image", "numpy.fft", "scipy"})
"""Modules, with all below them, that are Stretto's as they are."""

PUBLIC = {
    "abstract_arrays": "core",
    "api": "",
    "array": "",
    "basearray": "",
    "config": "",
    "debugging": "debug",
    "effects": "extend.core",
    "image.scale": "image",
    "lax.control_flow": "lax",
    "lax.convolution": "lax",
    "lax.lax": "lax",
    "lax.parallel": "lax",
    "lax.slicing": "lax",
    "linear_util": "extend.linear_util",
    "mesh": "sharding",
    "named_sharding": "sharding",
    "nn.functions": "nn",
    "numpy.lax_numpy": "numpy",
    "numpy.reductions": "numpy",
    "numpy.ufuncs": "numpy",
    "ops.scatter": "ops",
    "partition_spec": "sharding",
    "public_test_util": "test_util",
    "shard_map": "experimental.shard_map",
    "sharding_impls": "sharding",
    "source_info_util": "extend.source_info_util",
    "tree": "tree",
}
"""The public modules that have the names of those of ``jax._src``."""


def _home(path: str) -> Any:
    """Return the module that has the names of ``jax.<path>``; None if there is none."""
    if not path:
        return importlib.import_module(ROOT)
    if path not in ROWS and path.startswith("_src."):
        path = path.removeprefix("_src.")
        path = PUBLIC.get(path, path)
        if not path:
            return importlib.import_module(ROOT)
    if path in ROWS:
        return module_of(path)
    if path in REFUSED:
        return RefusedName(f"jax.{path}", REFUSED[path])
    parts = path.split(".")
    for i in range(1, len(parts) + 1):
        if ".".join(parts[:i]) in SAME:
            found: Any = importlib.import_module("stretto." + ".".join(parts[:i]))
            for part in parts[i:]:
                found = getattr(found, part, None)
            return found
    return None


class Presented(ModuleType):
    """A module of JAX's name, whose names are those of its home."""

    __home__: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__version__", "__version_info__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name)
        path = f"{self.__name__}.{name}".partition(".")[2]
        public = path.removeprefix("_src.")
        moved = path != public and public in PUBLIC
        if path in ROWS or public in ROWS or public in SAME or moved:
            return importlib.import_module(f"jax.{path}")
        try:
            value = getattr(self.__home__, name)
        except AttributeError as error:
            hint = str(error).partition(": ")[2]
            raise AttributeError(
                f"module {self.__name__!r}, as Stretto presents it, has no attribute {name!r}"
                + (f": {hint}" if hint else ""),
                name=name,
                obj=self,
            ) from None
        if isinstance(value, ModuleType) and not isinstance(value, Presented):
            if _home(path) is None:  # a module of Stretto's that JAX has no counterpart of
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
            return importlib.import_module(f"jax.{path}")
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.__home__)})


class _Distribution(importlib.metadata.Distribution):
    """Answers ``importlib.metadata`` for JAX."""

    def read_text(self, filename: str) -> str | None:
        """Return the metadata, for this file alone."""
        lines = "Metadata-Version: 2.1", "Name: jax", f"Version: {VERSION}", ""
        return "\n".join(lines) if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        """Return the path; there are no files."""
        return pathlib.Path(path)


class _Finder(importlib.metadata.DistributionFinder, importlib.abc.Loader):
    """Finds ``jax`` and what is below it, before any other finder does."""

    def find_distributions(self, context: Any = None) -> Iterable[importlib.metadata.Distribution]:
        """Return JAX, of the version whose names are presented."""
        name = getattr(context, "name", None)
        return [_Distribution()] if name in (None, "jax") else []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module of JAX's; None for other packages."""
        if fullname != "jax" and not fullname.startswith("jax."):
            return None
        home = _home(fullname.partition(".")[2])
        if home is None:
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: Stretto stands for JAX here, and does not have "
                f"this module of it",
                name=fullname,
            )
        spec = importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        spec.loader_state = home
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the view, empty as yet."""
        return Presented(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Give the view its home."""
        assert module.__spec__ is not None
        home = module.__spec__.loader_state
        module.__dict__["__home__"] = home
        module.__doc__ = getattr(home, "__doc__", None)
        if hasattr(home, "__all__"):
            module.__dict__["__all__"] = home.__all__


_FINDER = _Finder()


def install() -> None:
    """Have ``import jax`` give Stretto under JAX's names, in this process, from now on.

    Settings whose defaults differ are set to JAX's, and those that ``JAX_...`` in the environment
    has to these. Called again, it does nothing.

    Raises:
        RuntimeError: JAX itself was imported before.

    >>> import stretto as st
    >>> st.as_jax.install()  # doctest: +SKIP
    >>> import jax  # doctest: +SKIP
    """
    if _FINDER in sys.meta_path:
        return
    there = sys.modules.get("jax")
    if there is not None:
        raise RuntimeError(
            f"stretto.as_jax.install: JAX was imported already, from "
            f"{getattr(there, '__file__', None)}: call install() before anything imports jax, or "
            f"run `python -m stretto.as_jax script.py`"
        )
    from stretto.compat.jax import attributes, calls, settings  # noqa: PLC0415 (they change Stretto)

    sys.meta_path.insert(0, _FINDER)
    settings.start()
    calls.read_flags()
    attributes.attach()
    ARRAY_METHODS.append("__jax_array__")
