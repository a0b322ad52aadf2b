"""What modules say once, while they are imported: defaults of arguments, and their packages.

All defaults of public functions that are numbers, truth values or words are listed here: a change
of one is a change of every program that does not give it.
"""

import importlib
import inspect
import pkgutil

import pytest

DEFAULTS = {
    "stretto": {
        "Buckets.__init__": "start=16 growth=1.5",
        "Ragged.pad": "value=0",
        "checkpoint": "prevent_cse=True",
        "custom_jvp.defjvp": "symbolic_zeros=False",
        "custom_vjp.defvjp": "symbolic_zeros=False optimize_remat=False",
        "device_put": "donate=False",
        "disable_jit": "disable=True",
        "dynamic_size": "least=1",
        "enable_x64": "value=True",
        "grad": "argnums=0 has_aux=False holomorphic=False allow_int=False",
        "hessian": "argnums=0 has_aux=False holomorphic=False",
        "hvp": "has_aux=False",
        "io_callback": "ordered=False",
        "jacfwd": "argnums=0 has_aux=False holomorphic=False allow_int=False",
        "jacrev": "argnums=0 has_aux=False holomorphic=False allow_int=False",
        "jet": "factorial_scaled=True",
        "jit": "keep_unused=False inline=False",
        "jvp": "has_aux=False",
        "linearize": "has_aux=False",
        "make_graph": "return_shape=False simplified=False",
        "primitive.def_jvp": "symbolic_zeros=False",
        "primitive.def_transpose": "symbolic_zeros=False",
        "shard_map": "check_vma=True",
        "value_and_grad": "argnums=0 has_aux=False holomorphic=False allow_int=False",
        "vjp": "has_aux=False",
        "vmap": "in_axes=0 out_axes=0",
    },
    "stretto.debug": {
        "print_environment_info": "return_string=False",
        "visualize_array_sharding": "use_color=True scale=1.0",
        "visualize_sharding": "use_color=True scale=1.0",
    },
    "stretto.lax": {
        "Tolerance.__init__": "atol=0.0 rtol=0.0 ulps=0",
        "all_gather": "axis=0 tiled=False to=varying",
        "all_to_all": "tiled=False",
        "argsort": "axis=-1 descending=False stable=True",
        "associative_scan": "reverse=False axis=0",
        "concatenate": "dimension=0",
        "conv_general_dilated": "feature_group_count=1 batch_group_count=1",
        "conv_transpose": "transpose_kernel=False use_consistent_padding=False",
        "cumlogsumexp": "axis=0 reverse=False",
        "cummax": "axis=0 reverse=False",
        "cummin": "axis=0 reverse=False",
        "cumprod": "axis=0 reverse=False",
        "cumsum": "axis=0 reverse=False",
        "custom_linear_solve": "symmetric=False has_aux=False",
        "custom_root": "has_aux=False",
        "dynamic_index_in_dim": "axis=0 keepdims=True allow_negative_indices=True",
        "dynamic_slice": "allow_negative_indices=True",
        "dynamic_slice_in_dim": "axis=0 allow_negative_indices=True",
        "dynamic_update_index_in_dim": "allow_negative_indices=True",
        "dynamic_update_slice": "allow_negative_indices=True",
        "dynamic_update_slice_in_dim": "allow_negative_indices=True",
        "gather": "unique_indices=False indices_are_sorted=False",
        "map": "in_axes=0 out_axes=0",
        "psum_scatter": "scatter_dimension=0 tiled=False",
        "reduce_window": "padding=VALID",
        "rng_bit_generator": "algorithm=0",
        "scan": "reverse=False unroll=1 _split_transpose=False",
        "scatter": "indices_are_sorted=False unique_indices=False",
        "scatter_add": "indices_are_sorted=False unique_indices=False",
        "scatter_max": "indices_are_sorted=False unique_indices=False",
        "scatter_min": "indices_are_sorted=False unique_indices=False",
        "scatter_mul": "indices_are_sorted=False unique_indices=False",
        "scatter_sub": "indices_are_sorted=False unique_indices=False",
        "segment_max": "indices_are_sorted=False unique_indices=False",
        "segment_min": "indices_are_sorted=False unique_indices=False",
        "segment_prod": "indices_are_sorted=False unique_indices=False",
        "segment_sum": "indices_are_sorted=False unique_indices=False",
        "slice_in_dim": "stride=1 axis=0",
        "sort": "dimension=-1 is_stable=True num_keys=1",
        "split": "axis=0",
        "top_k": "axis=-1",
    },
    "stretto.lax.linalg": {
        "cholesky": "symmetrize_input=True",
        "eig": (
            "compute_left_eigenvectors=True "
            "compute_right_eigenvectors=True enable_eigvec_derivs=False"
        ),
        "eigh": "lower=True symmetrize_input=True sort_eigenvalues=True",
        "ormqr": "left=True transpose=False",
        "qr": "pivoting=False full_matrices=True",
        "schur": "compute_schur_vectors=True sort_eig_vals=False",
        "svd": "full_matrices=True compute_uv=True",
        "symmetric_product": "alpha=1.0 beta=0.0 symmetrize_output=False",
        "triangular_solve": (
            "left_side=False lower=False transpose_a=False conjugate_a=False unit_diagonal=False"
        ),
        "tridiagonal": "lower=True",
        "tridiagonal_solve": "perturb_singular=False",
    },
    "stretto.tree": {
        "flatten_with_path": "is_leaf_takes_path=False",
        "keystr": "simple=False separator=",
    },
    "stretto.compat.jax.root": {
        "Device.__init__": "process_index=0",
        "fwd_and_bwd": "has_aux=False jitted=True",
        "jacobian": "argnums=0 has_aux=False holomorphic=False allow_int=False",
        "print_environment_info": "return_string=False",
        "smap": "in_axes=0",
    },
}


def public(module):
    """Yield the functions of a module and the methods of its classes, by name."""
    for name in module.__all__:
        found = getattr(module, name)
        if not inspect.isclass(found):
            yield name, found
            continue
        for method, function in vars(found).items():
            if not method.startswith("_") or method == "__init__":
                yield f"{name}.{method}", function


def of_the_engine(function):
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is not None and "/_engine/" in code.co_filename.replace("\\", "/")


@pytest.mark.parametrize("name", DEFAULTS)
def test_all_defaults_are_listed(name):
    """Those of one function under several names need be listed once."""
    found = {}
    for function_name, function in public(importlib.import_module(name)):
        if callable(function) and of_the_engine(function):
            parameters = inspect.signature(function).parameters.values()
            said = [
                f"{p.name}={p.default}"
                for p in parameters
                if isinstance(p.default, (bool, int, float, str))
            ]
            if said and "_p." not in function_name:  # of the primitives themselves
                found[function_name] = " ".join(said)
    elsewhere = DEFAULTS["stretto"].items() if name != "stretto" else ()
    listed = {*DEFAULTS[name].items(), *elsewhere}
    assert found.items() <= listed and DEFAULTS[name].items() <= found.items()


@pytest.mark.parametrize("name", ["stretto.lax", "stretto.lax.linalg", "stretto.tree", "stretto"])
def test_functions_have_names(name):
    """Those of makers have the names under which they are exported, as others do."""
    exported = importlib.import_module(name)
    for one in exported.__all__:
        function = inspect.unwrap(getattr(exported, one))
        if inspect.isfunction(function) and of_the_engine(function):
            assert function.__name__ == function.__qualname__
            assert not function.__code__.co_qualname.endswith(".<lambda>")
            if "<locals>" in function.__code__.co_qualname:
                assert function.__name__ == one


ON_DEMAND = {
    "api": "graph",
    "api.sharding": "placement",
    "api.varying_sizes": "dynamic_axes",
    "core": "types",
    "eager": "checked",
    "higher_order": "scan",
    "ops": "sort_lowering",
    "ops.collective": "primitives",
    "ops.linalg": "lu",
    "ops.reducing": "running",
    "passes.rolling": None,
    "xla": "sharded",
}


@pytest.mark.parametrize("name", ON_DEMAND)
def test_packages_have_their_modules_when_they_are_asked_for(name, monkeypatch):
    """So that modules which need each other need no order."""
    package = importlib.import_module(f"stretto._engine.{name}")
    module = ON_DEMAND[name] or next(iter(pkgutil.iter_modules(package.__path__))).name
    whole = importlib.import_module(f"{package.__name__}.{module}")
    monkeypatch.delattr(package, module)
    assert getattr(package, module) is whole
