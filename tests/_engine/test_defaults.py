"""What modules say once, while they are imported: defaults of arguments, and their packages.

All defaults of public functions that are numbers, truth values or words are listed here: a change
of one is a change of every program that does not give it. So are those within the engine, but for
words.
"""

import importlib
import inspect
import os
import pkgutil
import subprocess
import sys

import pytest

from stretto._engine.api.jit import jit
from stretto._engine.api.varying_sizes import ragged
from stretto._engine.core import boundary, config, guarded, size_guards, sizes
from stretto._engine.eager import table
from stretto._engine.xla import array, background, ending, sharded

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


INNER = """
    api.exported:trace derivatives=False
    api.jit.entry:Entry decided=False quick=False later=False records=0
    api.jit.stages:ArgInfo donated=False
    api.sharding.shard_map:pmap in_axes=0 out_axes=0
    api.varying_sizes.over_ragged:Batch.record known=True
    api.varying_sizes.sizes:_positions rectangles=True
    autodiff.jvp:Differentiator linear=False
    autodiff.linearize:linearize_flat linear=False
    autodiff.masked:Masked depth=0
    autodiff.masked:Masked.behind with_zeros=True
    autodiff.masked:take_apart by_row=False
    autodiff.transpose:Masks more=False
    core.caches:room capacity=4096
    core.cards:bars count=40
    core.cards:sketch count=24
    core.cards:first_lines most=40
    core.cards:one_line most=80
    core.cards:Card open=True
    core.cells:giving kept=False
    core.files:write_whole durable=True
    core.integers:check_fits asked=False
    core.interpreter:Linear masked=False
    core.interpreter:constant weak_type=False
    core.machine:read most=-1
    core.machine:Memory swap=0 free_swap=0
    core.primitive:Primitive.__init_subclass__ abstract=False
    core.program:lines_of depth=0
    core.size_guards:known_sizes of_examples=False
    core.sizes:SizeVariable least=1 most=inf
    core.sizes:size_variable least=1 most=inf
    core.sizes:_in_package up=2
    core.system:open_at_once mode=438
    core.system:open_no_link mode=384
    core.threads:Latch.wait seconds=-1
    core.types:array_type weak_type=False
    core.typing:IndexUpdate.get indices_are_sorted=False unique_indices=False
        wrap_negative_indices=True
    eager.checked:Fault backward=False
    eager.checked:Known fresh=False
    eager.interpreter:array_of weak=False
    eager.table:eager_call reflected=False
    higher_order.callback:_Callback._for_each unroll=1
    higher_order.cond:select_branches keep_rules=False
    higher_order.cond:_results keep_rules=False
    higher_order.custom_function:fit_results tangent=False
    higher_order.custom_function:zero_from_primal symbolic_zeros=False
    higher_order.family:only_where keep_rules=False
    higher_order.implicit:record_like arguments=1 has_aux=False
    higher_order.loops:map_ in_axes=0 out_axes=0
    higher_order.loops:record_example one_by_one=False
    higher_order.loops:in_axis inner=0
    higher_order.loops:out_axis inner=0
    higher_order.scan:scan reverse=False unroll=1
    higher_order.sized_call:SizedCall._marks more=0
    higher_order.user_primitive:primitive._give symbolic_zeros=False
    lowering.onnx.elementwise:_shift arithmetic=False
    lowering.onnx.patterns:_is_not_negative depth=8
    lowering.onnx.recurrent:_Sum line=0.0
    lowering.onnx.recurrent:_Part sign=1.0
    lowering.onnx.writer:Writer.node outputs=1
    lowering.onnx.writer:Writer.program at_hand=False
    lowering.onnx.writer:Writer.call apart=False
    lowering.polymorphic:Polymorphic.call apart=False
    lowering.stablehlo:Builder.inline as_is=False
    lowering.stablehlo:Builder.inline_many as_is=False
    lowering.stablehlo:Builder.program at_hand=False as_is=False
    lowering.stablehlo:Builder.call apart=False
    lowering.text:Facts kernel_products=0 fused_products=0 kernel_rows=0 kernel_updates=0
        kernel_attention=0 kernel_gathers=0 has_reductions=False has_loops=False
        has_barriers=False has_barriers_in_loops=False has_convolutions_in_loops=False
        largest_call_in_loops=0 may_take_long=False
    ops.bilinear:DotAlgorithm lhs_component_count=1 rhs_component_count=1
        num_primitive_operations=1 allow_imprecise_accumulation=False
    ops.collective.functions:groups_of equal=False
    ops.comparison:full weak_type=False
    ops.contract:tensordot axes=2
    ops.convert:convert weak_type=False
    ops.convert:value_in wrap=False
    ops.convolution.formulation:formulation called=True
    ops.convolution.general:convolved feature_group_count=1 batch_group_count=1
    ops.convolution.geometry:cut hidden=False
    ops.convolution.geometry:as_matrix reverse=False
    ops.elementwise:Elementwise.__init_subclass__ abstract=False
    ops.elementwise:promote_values inexact=False ranks=False
    ops.fused_attention:Step constant=0.0 offset=0
    ops.index.gather_scatter:gathered unique_indices=False indices_are_sorted=False
    ops.index.gather_scatter:Scatter.__call__ indices_are_sorted=False unique_indices=False
    ops.index.primitives:take_along_axis wrap_negative=True
    ops.index.segments:Segments.__call__ indices_are_sorted=False unique_indices=False
    ops.linalg.family:check_matrix square=False
    ops.linalg.family:as_matrices square=False
    ops.linalg.matrix_parts:on_diagonal k=0
    ops.linalg.matrix_parts:lower_part k=0
    ops.linalg.matrix_parts:upper_part k=0
    ops.linalg.matrix_parts:diagonal_of k=0
    ops.linalg.written_out:_ascending falling=False
    ops.loop_program:_Line index=0
    ops.loop_program:_Compiler._width own=False
    ops.loop_program:_Compiler._value is_bool=False
    ops.product_strides:View offset=0
    ops.product_strides:_Axis added=0
    ops.product_strides:geometry relu=False
    ops.reducing.window:AxisWindow size=1 stride=1 low=0 high=0 base_dilation=1 dilation=1
    ops.reducing.window:WindowReduction.__init_subclass__ abstract=False
    ops.shape:part_of hidden=False
    ops.sort:sort axis=-1 descending=False stable=True
    ops.sort_lowering:canonical_key zeros=True
    ops.special.gamma:euler_maclaurin order=0
    ops.thresholds:Cost compiling=40.0
    ops.thresholds:Costs.sizes slower=1.0
    ops.thresholds:from_size least=32768
    passes.fuse_attention:_Operand scaled=False
    passes.hoist_products:gathered all_sums=False
    passes.hoist_products:_Loop all_sums=False
    passes.rolling.roll_loops:roll_loops always=False
    passes.rolling.roll_loops:tokens_of always=False
    passes.tracked_axes:regrouped may_split=True
    passes.tracked_axes:of_result may_split=False
    xla.ending:wait_until_idle patience=5.0
    xla.ending:_wait_for_threads patience=5.0
    xla.instructions:size_of last=False
    xla.kernels:kernels_of rounds=1
    xla.partitions:PlacedExecutable same_lines=True
    xla.pjrt:runner parts=1
"""
"""The same of functions, methods and records within the engine: what whoever calls them leaves out.

A line begins with the module and the name, and goes on where it begins with more spaces.
"""


@pytest.mark.parametrize("row", INNER.strip().replace("\n        ", " ").split("\n"))
def test_defaults_within_the_engine(row):
    name, *listed = row.split()
    module, _, path = name.partition(":")
    found = importlib.import_module(f"stretto._engine.{module}")
    for part in path.split("."):
        found = inspect.getattr_static(found, part)
    function = getattr(found, "__func__", found)
    parameters = inspect.signature(getattr(function, "fget", function)).parameters.values()
    assert listed == [
        f"{p.name}={p.default}" for p in parameters if isinstance(p.default, (bool, int, float))
    ]


SAID = """
    core.interpreter:Interpreter at_rest=False borrows=False passes_writes=True
    core.recorder:Recorder at_rest=False borrows=True passes_writes=True
    autodiff.linearize:_LinearRecorder at_rest=False borrows=False passes_writes=True
    higher_order.loops:Examples at_rest=False borrows=False passes_writes=False
    eager.checked:Checked ended=False at_rest=True borrows=False
    eager.interpreter:Eager ended=False at_rest=True borrows=False
    eager.interpreter:OnDevice ended=False at_rest=True borrows=False
    lowering.writer:Writer has_kernels=False
    lowering.stablehlo:Builder plans=True
    lowering.portable:Portable plans=False has_kernels=False
    lowering.polymorphic:Polymorphic has_kernels=False
    lowering.onnx.writer:Writer partitioned=False hides=False
    passes.formulations.forms:Shared to_cut=0 to_stack=0
    passes.formulations.forms:Whole to_stack=0
    passes.formulations.forms:Parts to_cut=0
    higher_order.refs:Ref weak_type=False
"""
"""What interpreters, writers and forms of members say of all of their kind."""


@pytest.mark.parametrize("row", SAID.split("\n")[1:-1])
def test_what_classes_say_of_themselves(row):
    name, *said = row.split()
    module, _, found = name.partition(":")
    kind = getattr(importlib.import_module(f"stretto._engine.{module}"), found)
    names = [each.partition("=")[0] for each in said]
    assert [f"{each}={inspect.getattr_static(kind, each)}" for each in names] == said


IN_CHILDREN = """
import importlib, os, pkgutil
found, register = [], os.register_at_fork

def noted(**functions):
    found.append(functions.get("after_in_child"))
    register(**functions)

os.register_at_fork = noted
import stretto._engine
for module in pkgutil.walk_packages(stretto._engine.__path__, "stretto._engine."):
    importlib.import_module(module.name)
for function in found:
    if (getattr(function, "__module__", None) or "stretto.").startswith("stretto."):
        print(function.__module__, function.__qualname__)
"""


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="needs fork")
def test_what_is_done_in_each_forked_child():
    """Those without a module empty a list of programs that run, and a set of what is at work."""
    done = subprocess.run(
        [sys.executable, "-c", IN_CHILDREN], capture_output=True, text=True, check=True
    )
    assert sorted(done.stdout.replace("stretto._engine.", "").splitlines()) == [
        "None list.clear",
        "None set.clear",
        "api.jit.jit _forget_records",
        "core.threads _after_fork",
        "core.threads _release",
        "xla.background _forget_compilations",
        "xla.background _forget_work",
        "xla.clients _after_fork",
        "xla.patience _after_fork",
        "xla.processes _after_fork",
    ]


def test_what_modules_hand_to_those_below_them():
    assert {background.wait_for_all, background._end_work} <= {*ending._waits}
    assert table._forget_ranks in config.watch.forget
    assert boundary._trim_quietly in guarded.leaving
    assert size_guards._decide in sizes._GUARDS
    assert len(sizes._VALUE) == 1
    assert jit._forget_records in jit.watch
    assert ragged.Ragged in ragged.RAGGED
    assert ragged.Ragged in ragged.APART
    assert sharded.Sharded in array.SHARDED


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
