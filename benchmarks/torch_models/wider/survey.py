"""What comes in of a model: each use of it beside PyTorch's own result in float64."""

from __future__ import annotations

import dataclasses
import functools
import gc
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves, tree_map

import stretto as st
from benchmarks.torch_models import reference
from benchmarks.torch_models.comparing import distance, numbered
from benchmarks.torch_models.model import Call, Model
from benchmarks.torch_models.ours import arrays_of, leaves_of

__all__ = ["BOUND", "USES", "Finding", "Survey", "survey"]

MEMBERS = 3

BATCHES = (1, 5)
"""Numbers of examples beside that of the example, which is two or three."""

BOUND = 1e-9
"""The largest relative error of an output, a gradient or a buffer, as in ``comparing``."""

USES = ("import", "outputs", "gradients", "compiled", "batches", "members", "training")
"""What is tried with a model, in this order.

- *import*: ``st.from_torch`` takes it.
- *outputs*: what it gives in evaluation mode.
- *gradients*: those of a random projection of its outputs, by all parameters.
- *compiled*: the same outputs under ``st.jit``.
- *batches*: outputs with one example and with five.
- *members*: outputs and gradients of an ``Ensemble`` of three with weights of their own.
- *training*: loss, gradients and buffers of a step in train mode.
"""

Arrays = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Finding:
    """What came of one use.

    Args:
        verdict: ``"right"``, ``"refused"`` in words, ``"differs"``, ``"failed"`` otherwise, or
            ``"none"`` where there is nothing to compare.
        detail: the first line of the message, or which array differs.
        error: the largest relative error, if anything was compared.
    """

    verdict: str
    detail: str = ""
    error: float = 0.0


@dataclasses.dataclass
class Survey:
    """What came of each use of a model, by the names in ``USES``.

    Args:
        name: the model's.
        findings: what was found; uses that could not be reached are not there.
        seconds: how long it took.
    """

    name: str
    findings: dict[str, Finding] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """The worst of what was found."""
        found = {finding.verdict for finding in self.findings.values()}
        return next((x for x in ("differs", "failed", "refused") if x in found), "right")


def survey(model: Model) -> Survey:
    """Try every use of a model."""
    start = time.perf_counter()
    found = Survey(model.name)
    try:
        _survey(model, found.findings)
    except Exception as error:  # the model's own, or of its comparison: the others are surveyed
        found.findings["import"] = Finding("failed", f"the survey: {_in_words(error)}")
    gc.collect()
    found.seconds = round(time.perf_counter() - start, 1)
    return found


def _survey(model: Model, findings: dict[str, Finding]) -> None:
    others = [model.made(seed).module for seed in range(1, MEMBERS)]
    with reference.in_double(model.made(), single=model.single) as call:
        calls = [call, *[dataclasses.replace(call, module=other.double()) for other in others]]
        for each in calls:
            each.module.eval()
        # Before what PyTorch computes, which may leave things in the module.
        ensemble, module = _imported(calls, findings)
        if module is None:
            return
        outputs = [_expected(each) for each in calls]
        gradients = [_gradients(each) for each in calls]

        def tried(name: str, parts: Callable[[], Sequence[tuple[Arrays, Arrays]]]) -> None:
            findings[name] = _compared(parts)

        compiled = model.compiled
        tried("outputs", lambda: [(_outputs(module, call), outputs[0])])
        at_once = _AtOnce(module, call, compiled)
        tried("gradients", lambda: [(at_once.gradients(gradients[0]), gradients[0])])
        if compiled:
            tried("compiled", lambda: [(at_once.outputs(), outputs[0])])
        if model.batched:
            tried("batches", lambda: _batches(module, call))
        if ensemble is not None:
            tried("members", lambda: _members(ensemble, call, outputs, gradients, compiled))
            if len(ensemble.groups) > 1 and findings["members"].verdict == "right":
                several = f"as {len(ensemble.groups)} programs"
                findings["members"] = dataclasses.replace(findings["members"], detail=several)
        if module.training_program is not None:
            findings["training"] = _training(module, call, compiled)


def _imported(calls: Sequence[Call], findings: dict[str, Finding]) -> tuple[Any, Any]:
    """An ensemble of all, and the first of its members; None where they are refused."""
    args, kwargs = calls[0].args, dict(calls[0].kwargs)
    modules = [each.module for each in calls]
    for train in (True, False):
        try:
            ensemble = st.Ensemble.from_torch(modules, args, kwargs, train=train)
            findings.setdefault("import", Finding("right"))
            return ensemble, ensemble[0]
        except Exception as error:
            findings["training" if train else "members"] = _raised(error)
    try:
        module = st.from_torch(modules[0], args, kwargs)
        findings["import"] = Finding("right")
        return None, module
    except Exception as error:
        findings.clear()
        findings["import"] = _raised(error)
        return None, None


def _outputs(f: Any, call: Call) -> Arrays:
    args, kwargs = arrays_of(call)
    return numbered([np.asarray(x) for x in leaves_of(f(*args, **kwargs))])


def _batches(module: Any, call: Call) -> list[tuple[Arrays, Arrays]]:
    found = []
    for count in BATCHES:
        other = _of_size(call, count)
        expected = _expected(other)
        try:
            found.append((_outputs(module, other), expected))
        except Exception as error:
            error.args = (f"{count} examples: {error}",)
            raise
    return found


def _of_size(call: Call, count: int) -> Call:
    """The call with another number of examples, taken from its own and turned in their order."""
    leaves = [x for x in tree_leaves((call.args, dict(call.kwargs))) if isinstance(x, torch.Tensor)]
    size = next(x.shape[0] for x in leaves if x.ndim)

    def resized(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or not x.ndim or x.shape[0] != size:
            return x
        return x[(torch.arange(count) + 1) % size]

    args, kwargs = tree_map(resized, (call.args, dict(call.kwargs)))
    return Call(call.module, args, kwargs)


def _tensors(call: Call) -> list[torch.Tensor]:
    """What PyTorch gives, in the order that the leaves of the same results have here."""
    results = _sorted(call.module(*call.args, **call.kwargs))
    return [x for x in tree_leaves(results) if isinstance(x, torch.Tensor)]


def _sorted(x: Any) -> Any:
    if type(x) is dict:
        return {name: _sorted(x[name]) for name in sorted(x)}
    return type(x)(map(_sorted, x)) if type(x) in (tuple, list) else x


def _expected(call: Call) -> Arrays:
    """PyTorch's outputs; gradients are on, as some are computed inside."""
    return numbered([x.detach().numpy().copy() for x in _tensors(call)])


def _projected(call: Call) -> torch.Tensor:
    tensors = _tensors(call)
    terms: Any = [
        (torch.from_numpy(reference.weights(tuple(x.shape), k)) * x).mean()
        for k, x in enumerate(tensors)
        if x.is_floating_point() and x.requires_grad
    ]
    return sum(terms[1:], terms[0])


def _gradients(call: Call) -> Arrays:
    """PyTorch's, of the projection; what it does not depend on has 0, as here."""
    call.module.zero_grad()
    with reference.Exact():
        _projected(call).backward()
    named = [(name, x) for name, x in call.module.named_parameters() if x.requires_grad]
    zero = torch.zeros_like
    return {n: (zero(x) if x.grad is None else x.grad).numpy().copy() for n, x in named}


def _projection(leaves: Sequence[Any], member: int = 0) -> Any:
    """The projection of outputs, whose first axis is the members' if there is one."""
    terms = [
        (reference.weights(x.shape[member:], k) * x).mean()
        for k, x in enumerate(leaves)
        if x.dtype.kind == "f"
    ]
    return sum(terms[1:], terms[0])


class _AtOnce:
    """Outputs and gradients, as one program, which runs when the first of them is asked for."""

    def __init__(self, module: Any, call: Call, compiled: bool, member: int = 0) -> None:
        self._module, self._call, self._compiled, self._member = module, call, compiled, member

    @functools.cached_property
    def _both(self) -> Any:
        args, kwargs = arrays_of(self._call)

        def loss(module: Any) -> Any:
            leaves = leaves_of(module(*args, **kwargs))
            return _projection(leaves, self._member) * (MEMBERS if self._member else 1), leaves

        program = st.grad(loss, has_aux=True)
        return (st.jit(program) if self._compiled else program)(self._module)

    def outputs(self) -> Arrays:
        return numbered([np.asarray(x) for x in self._both[1]])

    def gradients(self, names: Arrays, member: int | None = None) -> Arrays:
        slopes = self._both[0] if member is None else self._both[0][member]
        return {n: np.asarray(x) for n, x in slopes.state_dict().items() if n in names}


def _members(
    ensemble: Any, call: Call, outputs: Any, gradients: Any, compiled: bool
) -> list[tuple[Arrays, Arrays]]:
    at_once = _AtOnce(ensemble, call, compiled, member=1)
    pairs = []
    for k, (out, expected) in enumerate(zip(outputs, gradients, strict=True)):
        pairs.append(({n: x[k] for n, x in at_once.outputs().items()}, out))
        pairs.append((at_once.gradients(expected, k), expected))
    return pairs


def _training(module: Any, call: Call, compiled: bool) -> Finding:
    before = {name: x.clone() for name, x in call.module.state_dict().items()}
    call.module.train()
    values = []
    for seed in (1, 2):
        call.module.load_state_dict(before)
        torch.manual_seed(seed)
        expected = _gradients(call)
        saved = call.module.state_dict()
        buffers = {n: x.numpy().copy() for n, x in call.module.named_buffers() if n in saved}
        values.append({**expected, **buffers})
    call.module.load_state_dict(before)
    if distance(*values)[0] > BOUND:
        return Finding("none", "it draws random numbers")
    args, kwargs = arrays_of(call)
    module.train()

    def step(parameters: Any, others: Any) -> Any:
        def loss(parameters: Any, others: Any) -> Any:
            results, after = st.func.functional_call(
                module, [parameters, others], args, kwargs, return_buffers=True
            )
            return _projection(leaves_of(results)), after

        return st.value_and_grad(loss, has_aux=True)(parameters, others)

    def parts() -> list[tuple[Arrays, Arrays]]:
        run = st.jit(step) if compiled else step
        named = dict(module.named_parameters()), dict(module.named_buffers())
        (_, after), slopes = run(*named)
        found = {n: np.asarray(x) for n, x in {**slopes, **after}.items() if n in values[0]}
        return [
            ({n: found[n] for n in names if n in found}, {n: values[0][n] for n in names})
            for names in (expected, buffers)
        ]

    return _compared(parts)


def _compared(parts: Callable[[], Sequence[tuple[Arrays, Arrays]]]) -> Finding:
    try:
        worst, where = max([distance(found, expected) for found, expected in parts()])
    except Exception as error:
        return _raised(error)
    return Finding("right" if worst <= BOUND else "differs", where, float(f"{worst:.1e}"))


def _raised(error: Exception) -> Finding:
    """A refusal is in our words, or a note of ours says that PyTorch refuses it."""
    notes = " ".join(getattr(error, "__notes__", ()))
    ours = any([words in str(error) for words in ("from_torch", "import the module", "Ensemble")])
    refused = "PyTorch cannot export" in notes or (
        ours and isinstance(error, (NotImplementedError, TypeError, ValueError))
    )
    return Finding("refused" if refused else "failed", _in_words(error))


def _in_words(error: Exception) -> str:
    """The first lines of a message, as one of at most 300 characters."""
    notes = [note for note in getattr(error, "__notes__", ()) if note.startswith("from_torch: ")]
    lines = [line.strip() for line in [*notes, *str(error).splitlines()] if line.strip()]
    text = " ".join([f"{type(error).__name__}:", *lines[:3]])
    return re.sub(r"(/[\w.-]+)+/(?=benchmarks/|site-packages/)", "", text)[:300]
