"""Names of PyTorch and JAX that are called otherwise here, and what to write instead.

The words of errors: ``numpy/updating`` gives arrays the names of ``ARRAYS``, ``optim/base``
optimizers those of ``OPTIMIZERS``; ``nn/module`` looks up names in ``MODULES``,
``ensemble/ensemble`` in ``ENSEMBLES``, ``lazy`` those of packages, and ``boundary`` keywords. A
test runs each entry, beside PyTorch where that is installed.
"""

from __future__ import annotations

import importlib
import inspect
import linecache
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any


def _by_name(table: Mapping[str, str]) -> dict[str, str]:
    """Return the advice for each name; a line of the table may have several.

    An entry is code, or a sentence with code between backticks. ``{name}`` in it is the name,
    ``{stem}`` the name without its last character, an underscore.
    """
    return {
        name: (entry if "`" in entry else f"use `{entry}`")
        .replace("{name}", name)
        .replace("{stem}", name[:-1])
        for names, entry in table.items()
        for name in names.split()
    }


_GRADIENT = "use `st.grad(loss)(x)`: a gradient is that of a function, and a value of its own"

ARRAYS = _by_name(
    {
        # Names and shapes
        "numel nelement": "x.size",
        "dim ndimension": "x.ndim",
        "element_size": "x.itemsize",
        "unsqueeze": "snp.expand_dims(x, dim)",
        "permute": "x.transpose(dims)",
        "movedim": "snp.moveaxis(x, dim0, dim1)",
        "swapdims": "x.swapaxes(dim0, dim1)",
        "t": "x.T",
        "H": "x.mT.conj()",
        "expand": "snp.broadcast_to(x, size)",
        "expand_as": "snp.broadcast_to(x, other.shape)",
        "reshape_as view_as": "x.reshape(other.shape)",
        "contiguous is_contiguous": "use `x`: the layout of arrays is not for programs to see",
        "data_ptr": "numpy.asarray(x).ctypes.data",
        "unbind": "snp.unstack(x, axis=dim)",
        "split": "snp.split(x, range(split_size, x.shape[dim], split_size), dim)",
        "chunk": "snp.array_split(x, chunks, dim)",
        "narrow": "st.lax.dynamic_slice_in_dim(x, start, length, dim)",
        "tile": "snp.tile(x, dims)",
        "flip": "snp.flip(x, dims)",
        "roll": "snp.roll(x, shifts, dims)",
        "diag tril triu": "snp.{name}(x)",
        "unflatten": "nn.functional.unflatten(x, dim, sizes)",
        # Dtypes, devices and memory
        "to": "use `x.astype(dtype)` for a dtype, `st.device_put(x, device)` for a device",
        "type_as": "x.astype(other.dtype)",
        "float": "x.astype(snp.float32)",
        "double": "x.astype(snp.float64)",
        "half": "x.astype(snp.float16)",
        "bfloat16": "x.astype(snp.bfloat16)",
        "long": "x.astype(snp.int64)",
        "int": "x.astype(snp.int32)",
        "short": "x.astype(snp.int16)",
        "char": "x.astype(snp.int8)",
        "byte": "x.astype(snp.uint8)",
        "bool": "x.astype(bool)",
        "is_floating_point": "snp.issubdtype(x.dtype, snp.floating)",
        "is_complex": "snp.iscomplexobj(x)",
        "numpy": "numpy.asarray(x)",
        "cpu": "use `numpy.asarray(x)` for NumPy's array, `st.device_put(x, st.devices('cpu')[0])` "
        "for one here",
        "cuda": "use `st.device_put(x, device)`; a GPU's name is 'gpu'",
        "is_cuda get_device": "x.device",
        "clone": "use `x`: arrays never change, so that none needs a copy",
        # Gradients
        "grad grad_fn backward requires_grad requires_grad_ is_leaf retain_grad register_hook": (
            _GRADIENT
        ),
        "detach": "st.lax.stop_gradient(x)",
        "detach_": "x = st.lax.stop_gradient(x)",
        # Elements
        "masked_fill": "snp.where(mask, value, x)",
        "masked_select": "x[mask]",
        "where": "snp.where(condition, x, other)",
        "gather take_along_dim": "snp.take_along_axis(x, index, dim)",
        "scatter": "snp.put_along_axis(x, index, src, dim, inplace=False)",
        "index_select": "snp.take(x, indices, dim)",
        "index_add": "use `x.at[indices].add(source)` for dim 0, `x.at[:, indices]` for dim 1",
        "index_fill": "use `x.at[indices].set(value)` for dim 0, `x.at[:, indices]` for dim 1",
        "repeat_interleave": "snp.repeat(x, repeats, dim)",
        "topk": "st.lax.top_k(x, k)",
        "new_zeros new_empty": "snp.zeros(size, x.dtype)",
        "new_ones": "snp.ones(size, x.dtype)",
        "new_full": "snp.full(size, value, x.dtype)",
        "new_tensor": "snp.array(data, x.dtype)",
        "bernoulli": "st.random.bernoulli(key, x)",
        "multinomial": "st.random.categorical(key, snp.log(x), shape=(samples, *x.shape[:-1]))",
        # Arithmetic
        "add": "x + other",
        "sub subtract": "x - other",
        "mul multiply": "x * other",
        "div divide true_divide": "x / other",
        "pow": "x**exponent",
        "neg negative": "-x",
        "eq": "x == other",
        "ne": "x != other",
        "lt": "x < other",
        "le": "x <= other",
        "gt": "x > other",
        "ge": "x >= other",
        "equal": "snp.array_equal(x, other)",
        "allclose isclose maximum minimum fmod remainder": "snp.{name}(x, other)",
        "matmul mm bmm": "x @ mat2",
        "mv": "x @ vec",
        "addmm": "x + mat1 @ mat2",
        "outer ger": "snp.outer(x, other)",
        "clamp": "x.clip(min, max)",
        "abs exp expm1 log log10 log1p log2 sqrt square reciprocal sign": "snp.{name}(x)",
        "sin cos tan asin acos atan sinh cosh tanh asinh atanh": "snp.{name}(x)",
        "floor ceil trunc isnan isinf isfinite logical_not": "snp.{name}(x)",
        "rsqrt": "st.lax.rsqrt(x)",
        "erf erfc": "st.special.{name}(x)",
        "lerp": "x + weight * (end - x)",
        "sigmoid relu": "nn.functional.{name}(x)",
        "softmax log_softmax": "nn.functional.{name}(x, dim)",
        "logsumexp": "nn.logsumexp(x, dim)",
        # Reductions and matrices
        "amax": "x.max(dim)",
        "amin": "x.min(dim)",
        "norm": "snp.linalg.norm(x)",
        "median": "snp.median(x)",
        "quantile": "snp.quantile(x, q)",
        "unique": "snp.unique(x)",
        "bincount": "snp.bincount(x)",
        "count_nonzero": "snp.count_nonzero(x)",
        "inverse": "snp.linalg.inv(x)",
        "det": "snp.linalg.det(x)",
        # In place
        "zero_": "x = snp.zeros_like(x)",
        "fill_": "x = snp.full_like(x, value)",
        "copy_": "x = snp.broadcast_to(other, x.shape).astype(x.dtype)",
        "normal_": "x = st.random.normal(key, x.shape)",
        "uniform_": "x = st.random.uniform(key, x.shape)",
        "transpose_": "x = x.swapaxes(dim0, dim1)",
        "add_": "x = x + other",
        "sub_": "x = x - other",
        "mul_": "x = x * other",
        "div_": "x = x / other",
        "pow_": "x = x**exponent",
        "neg_": "x = -x",
        "clamp_": "x = x.clip(min, max)",
        "clip_": "x = x.clip(min, max)",
        "masked_fill_": "x = snp.where(mask, value, x)",
        "scatter_": "x = snp.put_along_axis(x, index, src, dim, inplace=False)",
        "unsqueeze_": "x = snp.expand_dims(x, dim)",
        "t_": "x = x.T",
        "abs_ exp_ log_ sqrt_ square_ floor_ ceil_ sin_ cos_ tanh_": "x = snp.{stem}(x)",
        "sigmoid_ relu_": "x = nn.functional.{stem}(x)",
        "index_add_": "use `x = x.at[indices].add(source)` for dim 0, `x.at[:, indices]` for dim 1",
        "index_fill_": "use `x = x.at[indices].set(value)` for dim 0, `x.at[:, indices]` for dim 1",
        # Lists, and arrays of JAX
        "append": "x = snp.append(x, value)",
        "aval": "st.ShapeDtypeStruct(x.shape, x.dtype)",
        "device_buffer": "use `x` itself, or `numpy.asarray(x)`",
    }
)
"""Advice by a tensor's attribute or method; ``x`` is the array, others are PyTorch's arguments."""

MODULES = _by_name(
    {
        "zero_grad": "leave it out: `st.grad(loss)(model)` gives new gradients at each call",
        "cuda": "use `model = st.device_put(model, device)`; a GPU's name is 'gpu'",
        "cpu": "use `model = st.device_put(model, 'cpu')`",
        "device": "next(model.parameters()).device",
        "dtype": "next(model.parameters()).dtype",
        "half": "model.to(snp.float16)",
        "bfloat16": "model.to(snp.bfloat16)",
        "float": "model.to(snp.float32)",
        "double": "model.to(snp.float64)",
        "type": "model.to(dtype)",
        "requires_grad_": "use `optim.chain(optimizer, optim.masked(optim.set_to_zero(), frozen))` "
        "with a tree of booleans, frozen",
        "compile": "use `st.jit(lambda model, x: model(x))`",
        "share_memory": "leave it out: the arrays of `model` never change, and threads share them",
        "register_forward_hook register_forward_pre_hook register_full_backward_hook": (
            "define a class whose method forward calls `model(x)`, and does the rest"
        ),
        "get_parameter": "dict(model.named_parameters())",
        "get_buffer": "dict(model.named_buffers())",
        "params variables": "dict(model.named_parameters())",
        "init": "leave it out: `nn.Linear(3, 3, key=key)` has its parameters at once",
        "tabulate summary": "str(model)",
    }
)
"""Advice by an attribute or method of PyTorch's ``nn.Module``, or of Flax's and Keras's."""

ENSEMBLES = _by_name(
    {
        "members models": "list(ensemble)",
        "parameters named_parameters params": "ensemble.state_dict()",
        "predict forward apply": "ensemble(x)",
        "compile jit": "use `ensemble(x)`: a call is one compiled program",
        "to cuda cpu": "st.device_put(ensemble, device)",
        "size": "len(ensemble)",
        "zero_grad": "leave it out: `st.grad(loss)(ensemble)` gives new gradients at each call",
    }
)
"""Advice by the name that is looked for in an ensemble."""

_STEP = (
    "use `updates, state = optimizer.update(grads, state, params)`, then "
    "`params = optim.apply_updates(params, updates)`"
)

OPTIMIZERS = _by_name(
    {
        "step": _STEP,
        "zero_grad": "leave it out: `st.grad(loss)(params)` gives new gradients at each call",
        "param_groups add_param_group": "use `optim.multi_transform` for groups of parameters, "
        "`optim.inject_hyperparams` to change hyperparameters",
        "state_dict load_state_dict": "use `state = optimizer.init(params)`, a tree of arrays: "
        "`st.save` and `st.load` take it",
    }
)
"""Advice by an attribute or method of PyTorch's optimizers."""

_OPTIMIZER = "use `optimizer = optim.{}(lr)`, then `state = optimizer.init(params)`"
_STOP = "leave it out, or use `st.lax.stop_gradient(x)`: only st.grad and its like take gradients"
_BATCHES = "use `for i in range(0, len(x), batch_size): batch = x[i : i + batch_size]`"

FUNCTIONS = _by_name(
    {
        # Making arrays
        "Tensor FloatTensor LongTensor": "use `st.Array` for the class, `snp.array(data)` to make "
        "one",
        "tensor as_tensor from_numpy": "snp.array(data)",
        "randn": "use `st.random.normal(key, size)` with `key = st.random.key(seed)`",
        "rand": "use `st.random.uniform(key, size)` with `key = st.random.key(seed)`",
        "randint": "use `st.random.randint(key, size, low, high)` with `key = st.random.key(seed)`",
        "randperm": "use `st.random.permutation(key, n)` with `key = st.random.key(seed)`",
        "seed Generator": "use `key = st.random.key(seed)`, or `st.random.manual_seed(seed)`",
        "bernoulli": "st.random.bernoulli(key, x)",
        "multinomial": "st.random.categorical(key, snp.log(x), shape=(samples, *x.shape[:-1]))",
        # Functions of arrays
        "cat": "snp.concatenate(tensors, dim)",
        "unsqueeze": "snp.expand_dims(x, dim)",
        "permute": "snp.transpose(x, dims)",
        "movedim": "snp.moveaxis(x, dim0, dim1)",
        "numel": "snp.size(x)",
        "t": "x.T",
        "unbind": "snp.unstack(x, axis=dim)",
        "split": "snp.split(x, range(split_size, x.shape[dim], split_size), dim)",
        "chunk": "snp.array_split(x, chunks, dim)",
        "flatten": "use `x.ravel()`, or `x.reshape(*x.shape[:start_dim], -1)` from an axis on",
        "add": "x + other",
        "sub": "x - other",
        "mul": "x * other",
        "div": "x / other",
        "mm bmm": "x @ mat2",
        "addmm": "x + mat1 @ mat2",
        "eq": "x == other",
        "ne": "x != other",
        "lt": "x < other",
        "le": "x <= other",
        "gt": "x > other",
        "ge": "x >= other",
        "clamp": "snp.clip(x, min, max)",
        "rsqrt": "st.lax.rsqrt(x)",
        "norm": "snp.linalg.norm(x)",
        "topk": "st.lax.top_k(x, k)",
        "gather": "snp.take_along_axis(x, index, dim)",
        "scatter": "snp.put_along_axis(x, index, src, dim, inplace=False)",
        "index_select": "snp.take(x, indices, dim)",
        "masked_select": "x[mask]",
        "masked_fill": "snp.where(mask, value, x)",
        "repeat_interleave": "snp.repeat(x, repeats, dim)",
        "lerp": "x + weight * (end - x)",
        "std": "snp.std(x, ddof=1)",
        "var": "snp.var(x, ddof=1)",
        "float": "snp.float32",
        "int": "snp.int32",
        "is_tensor": "isinstance(x, st.Array)",
        "Size": "use `x.shape`, a tuple",
        "in1d": "snp.isin(x, other)",
        "product": "snp.prod(x)",
        "cumproduct": "snp.cumprod(x)",
        "sometrue": "snp.any(x)",
        "alltrue": "snp.all(x)",
        "trapz": "snp.trapezoid(x)",
        "round_": "snp.round(x)",
        # JAX's and Flax's
        "tree_map tree_multimap": "st.tree.map",
        "tree_leaves": "st.tree.leaves",
        "tree_flatten": "st.tree.flatten",
        "tree_unflatten": "st.tree.unflatten",
        "tree_structure": "st.tree.structure",
        "index_update": "x.at[indices].set(value)",
        "DeviceArray": "st.Array",
        "xla_computation": "st.jit(loss).lower(x)",
        "host_callback": "use `st.pure_callback`, `st.debug.callback` or `st.debug.print`",
        "hard_tanh": "nn.functional.hardtanh",
        "hard_sigmoid": "nn.functional.hardsigmoid",
        "hard_silu hard_swish": "nn.functional.hardswish",
        "log_sigmoid": "nn.functional.logsigmoid",
        "soft_sign": "nn.softsign",
        "swish": "nn.silu",
        "standardize": "nn.functional.layer_norm(x, x.shape[-1:])",
        "dot_product_attention": "nn.functional.scaled_dot_product_attention",
        "initializers": "nn.init",
        "Dense": "nn.Linear",
        "Conv": "nn.Conv2d",
        # Gradients, compilation, devices, data
        "no_grad enable_grad set_grad_enabled inference_mode": _STOP,
        "autograd": "use `st.grad(loss)(x)`, or `st.custom_vjp` for rules of your own",
        "compile": "st.jit(loss)",
        "make_functional make_functional_with_buffers": "st.func.functional_call(model, params, x)",
        "combine_state_for_ensemble": "st.func.stack_module_state(models)",
        "functionalize": "leave it out: `loss(x)` cannot change its arguments",
        "device cuda": "st.devices()",
        "get_default_device": "st.devices()[0]",
        "set_default_device": "use `st.default_device(device)`, in a with statement",
        "set_default_dtype": "use `st.enable_x64` for 64 bits; all else has a dtype argument",
        "amp autocast": "use `model.to(snp.bfloat16)`",
        "utils DataLoader TensorDataset": _BATCHES,
        "DataParallel parallel SyncBatchNorm": "use `st.device_put(x, sharding)` with a sharding "
        "of `st.make_mesh`",
        # Optimizers
        "SGD": _OPTIMIZER.format("sgd"),
        "Adam": _OPTIMIZER.format("adam"),
        "AdamW": _OPTIMIZER.format("adamw"),
        "Adagrad": _OPTIMIZER.format("adagrad"),
        "RMSprop": _OPTIMIZER.format("rmsprop"),
        "RAdam": _OPTIMIZER.format("radam"),
        "NAdam": _OPTIMIZER.format("nadam"),
        "Adadelta": _OPTIMIZER.format("adadelta"),
        "Adamax": _OPTIMIZER.format("adamax"),
        "Optimizer": "optim.GradientTransformation",
        "lr_scheduler": "use a schedule in place of the rate, as in "
        "`optim.adam(optim.cosine_decay_schedule(lr, steps))`",
        "StepLR ExponentialLR": "optim.exponential_decay(lr, steps, decay_rate=0.5)",
        "CosineAnnealingLR": "optim.cosine_decay_schedule(lr, steps)",
        "OneCycleLR": "optim.cosine_onecycle_schedule(steps, lr)",
        "clip_grad_norm_": "optim.clip_by_global_norm(max_norm)",
        "clip_grad_value_": "optim.clip(max)",
        # Initial values
        "xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ normal_ uniform_ "
        "orthogonal_ trunc_normal_": "model.weight = nn.init.{stem}(key, model.weight.shape)",
        "zeros_ ones_": "model.weight = nn.init.{stem}(model.weight.shape)",
    }
)
"""Advice by the name that is looked for in any of the packages below."""

_UNDER_JAX = "use `{0}`, or `jax.{1}` after `st.as_jax.install()`"

ROOT = _by_name(
    {
        "make_jaxpr": _UNDER_JAX.format("st.make_graph", "make_jaxpr"),
        "remat": _UNDER_JAX.format("st.checkpoint", "remat"),
        "ad_checkpoint": _UNDER_JAX.format("st.checkpoint", "ad_checkpoint"),
        "custom_batching": _UNDER_JAX.format("st.custom_vmap", "custom_batching"),
        "sequential_vmap": _UNDER_JAX.format("st.custom_vmap", "custom_batching.sequential_vmap"),
        "custom_derivatives": _UNDER_JAX.format("st.custom_vjp", "custom_derivatives"),
        "custom_gradient": _UNDER_JAX.format("st.custom_vjp", "custom_gradient"),
        "fwd_and_bwd": _UNDER_JAX.format("st.vjp", "fwd_and_bwd"),
        "jacobian": _UNDER_JAX.format("st.jacrev", "jacobian"),
        "tree_util": _UNDER_JAX.format("st.tree", "tree_util"),
        "flatten_util": _UNDER_JAX.format("st.tree.ravel", "flatten_util"),
        "stages": _UNDER_JAX.format("st.typing", "stages"),
        "pmap smap": _UNDER_JAX.format("st.shard_map", "{name}"),
        "named_call": _UNDER_JAX.format("st.named_scope", "named_call"),
        "typeof": _UNDER_JAX.format("x.type", "typeof"),
        "copy_to_host_async": _UNDER_JAX.format("x.copy_to_host_async()", "copy_to_host_async"),
        "default_matmul_precision default_prng_impl log_compiles numpy_dtype_promotion "
        "threefry_partitionable": "use `st.config({name}=value)`, in a with statement",
        "profile": "st.profiler.profile",
        "load_header": "st.files.load_header",
        "float0": "st.dtypes.float0",
        "Device Ref": "st.typing.{name}",
        "ops": "st.lax.segment_sum",
        "multihost": "st.distributed",
        "local_devices local_device_count process_count process_index process_indices "
        "process_allgather": "st.distributed.{name}",
        "device_count": "len(st.devices())",
        "default_backend": "st.devices()[0].platform",
        "NamedSharding Mesh PartitionSpec set_mesh make_array_from_callback "
        "make_array_from_process_local_data "
        "make_array_from_single_device_arrays": "st.sharding.{name}",
        "effects_barrier live_arrays print_environment_info "
        "print_saved_residuals": "st.debug.{name}",
    }
)
"""Advice by the name looked for in ``stretto`` itself: JAX's, where a part of Stretto has it."""

_PACKAGES = {
    "stretto.numpy": "snp",
    "stretto": "st",
    "stretto.nn.functional": "nn.functional",
    "stretto.nn": "nn",
    "stretto.random": "st.random",
    "stretto.func": "st.func",
    "stretto.optim": "optim",
    "stretto.nn.init": "nn.init",
    "stretto.linalg": "snp.linalg",
    "stretto.special": "st.special",
    "stretto.lax": "st.lax",
    "stretto.tree": "st.tree",
    "stretto.ensemble": "st.ensemble",
}
"""The packages that PyTorch's names are looked for in, with their usual names."""

KEYWORDS = {
    "dim": "axis",
    "keepdim": "keepdims",
    "in_dims": "in_axes",
    "out_dims": "out_axes",
    "unbiased": "ddof",
    "lr": "learning_rate",
}
"""The parameter's name in NumPy's and JAX's spelling, by PyTorch's keyword."""

JAX_KEYWORDS = {
    **{theirs: keyword for keyword, theirs in KEYWORDS.items()},
    "epsilon": "eps",
    "x": "input",
}
"""The parameter's name in PyTorch's spelling, which ``nn`` has, by JAX's keyword."""

SPELLINGS = {**KEYWORDS, **JAX_KEYWORDS}
"""The other library's spelling of a keyword."""

_ASIDE = {
    "vmap in_dims out_dims randomness": "; `st.func.vmap` has PyTorch's arguments",
    "to device": "; for a device use `model = st.device_put(model, device)`",
    "named_parameters remove_duplicate": "; modules of this package are called by "
    "`st.func.functional_call`",
    "adam adamw nadam radam adamax betas": "; its entries are b1 and b2 here",
    "adam weight_decay": "; `optim.adamw` has it",
    "_flatten start_dim end_dim": "; use `x.reshape(*x.shape[:start_dim], -1)`",
    "one_hot dtype": "; the vectors are integers, use `.astype(dtype)`",
    "one_hot axis": "; the new axis is the last, use `snp.moveaxis`",
}
"""Further words, by the function and the keyword, both of which a line has."""


def of_package(package: str, name: str) -> str | None:
    """Return what to write for a name that a package lacks; None where nothing is known.

    Where the table does not have the name, but another package does, that one is named.
    """
    if package not in _PACKAGES or name.startswith("_"):
        return None
    if package == "stretto" and name in ROOT:
        return ROOT[name]
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    for other, short in _PACKAGES.items():
        module = importlib.import_module(other)
        if other != package and name in getattr(module, "__all__", vars(module)):
            return f"use `{short}.{name}`"
    return None


def explain_call(error: TypeError, function: Callable[..., Any] | None = None) -> None:
    """Add to an error of a call what users of PyTorch and JAX should know.

    Where a keyword is the other library's, what it is called here; where PyTorch got an array, what
    takes arrays; where ``x.size(0)`` called a number, what gives sizes. ``function`` is what was
    called, where that is known; otherwise it is looked up by its name.
    """
    text = str(error)
    if text == "'int' object is not callable" and re.search(r"\.size\(", _line_of(error)):
        error.args = (
            f"{text}; x.size is the number of elements: use `x.shape[0]`, and `x.shape` for all",
        )
    if re.search(r"must be Tensor, not (Array|Traced|Dual|Batched|\w*Tracer)$", text):
        error.args = (
            f"{text}; PyTorch's functions take no arrays: use those of `snp` and `nn.functional`, "
            f"and `st.from_torch` for a module",
        )
    # Since 3.13, Python may add what name it takes to be meant.
    guess = r"(?:\. Did you mean '\w+'\?)?"
    match = re.fullmatch(rf"(.*?(\w+)\(\) got an unexpected keyword argument '(\w+)'){guess}", text)
    if match is None:
        return
    plain, name, keyword = match.groups()
    if function is None:
        homes = [importlib.import_module(f"stretto{part}") for part in (".numpy", "", ".optim")]
        functions = [getattr(home, name) for home in homes if name in home.__all__]
    else:
        functions = [function] if function.__name__ == name else []
    ours = next((found for f in functions if (found := own_spelling(keyword, f))), None)
    asides = [aside for names, aside in _ASIDE.items() if {name, keyword} <= {*names.split()}]
    if ours or asides:
        error.args = ("".join([plain, f"; it is {ours} here" if ours else "", *asides]),)


def own_spelling(keyword: str, function: Callable[..., Any]) -> str | None:
    """Return the parameter of a function that another library spells like this; None without one.

    >>> from stretto.nn import functional as F
    >>> own_spelling("axis", F.softmax), own_spelling("axis", F.relu)
    ('dim', None)
    """
    ours = SPELLINGS.get(keyword)
    return ours if ours and ours in inspect.signature(function).parameters else None


def _line_of(error: BaseException) -> str:
    """Return the line of source that raised an error; empty where there is none."""
    # Not by `traceback`, which in Python 3.15 loads `pathlib`.
    at = error.__traceback__
    while at and at.tb_next:
        at = at.tb_next
    if at is None:
        return ""
    frame = at.tb_frame
    return linecache.getline(frame.f_code.co_filename, at.tb_lineno, frame.f_globals)


def is_pytorch(x: object) -> bool:
    """Say whether it is an object of one of PyTorch's classes, or of one derived from them."""
    return "torch" in sys.modules and any(
        [cls.__module__.partition(".")[0] == "torch" for cls in type(x).__mro__]
    )


def class_of(x: object) -> str:
    """Return the class of what should be a module; of PyTorch's, with how to make it one."""
    name = type(x).__name__
    if not is_pytorch(x):
        return name
    return f"PyTorch's {name}, of which `st.from_torch(model, example_args)` makes a module"
