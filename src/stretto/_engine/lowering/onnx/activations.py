"""Rules of spelling: activations, most of which onnxruntime has as one operator.

Where its formula loses what is kept here (digits near zero, a finite limit), the rule asks
``exact``. The operator Gelu does not count as such: it is within 2e-7 of max(1, |x|) everywhere,
as PyTorch's is, and only below -3, where GELU is near zero, are these not its last digits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.lowering.onnx.graph import Node
from stretto._engine.lowering.onnx.views import Found, either, keeps_shape

_F32 = np.dtype(np.float32)


def _near(x: float | None, y: float) -> bool:
    return x is not None and math.isclose(x, y, rel_tol=1e-6)


def _sloped(s: Any, node: Node) -> Found:
    """Where(x > 0, x, a x): LeakyRelu, and PRelu of several slopes."""
    test, x, other = node.inputs
    compared, product = s.by(test, "Greater"), s.by(other, "Mul")
    if compared is None or product is None or s.dtype(x) != _F32:
        return False
    if compared.inputs[0] != x or s.scalar(compared.inputs[1]) != 0:
        return False
    if s.shape(node.outputs[0]) != s.shape(x):
        return False
    for factor, y in either(product):
        value = s.value(factor)
        if y != x or value is None:
            continue
        if value.size == 1:
            return s.become(node, "LeakyRelu", [x], alpha=float(value.reshape(()).item()))
        return s.become(node, "PRelu", [x, factor])
    return False


def _expm1_of(s: Any, name: str) -> str | None:
    """Return x of exp(x) - 1 as it is written, without loss of digits: a multiple of x."""
    product = s.by(name, "Mul")
    for x, other in either(product) if product is not None else ():
        ratio, bounded = s.by(other, "Where"), s.by(x, "Max")
        if ratio is None or bounded is None:
            continue
        power = s.by(ratio.inputs[1], "Exp")
        if power is not None and power.inputs[0] == x and s.scalar(bounded.inputs[1]) == -100:
            return bounded.inputs[0]
    return None


def _log1p_of(s: Any, name: str) -> str | None:
    """Return x of log(1 + x) as it is written, without loss of digits: a multiple of x."""
    product = s.by(name, "Mul")
    for first, other in either(product) if product is not None else ():
        kept, ratio = s.by(first, "Where"), s.by(other, "Where")
        if kept is None or ratio is None or kept.inputs[0] != ratio.inputs[0]:
            continue
        x, total = kept.inputs[2], s.by(ratio.inputs[1], "Add")
        if s.scalar(kept.inputs[1]) != 1 or total is None:
            continue
        if any(s.scalar(one) == 1 and y == x for one, y in either(total)):
            return x
    return None


def _is_where_positive(s: Any, test: str, x: str) -> bool:
    compared = s.by(test, "Greater")
    return compared is not None and compared.inputs[0] == x and s.scalar(compared.inputs[1]) == 0


def _elu(s: Any, node: Node) -> Found:
    """Where(x > 0, x, a (exp(min(x, 0)) - 1))."""
    test, x, other = node.inputs
    if s.exact or s.dtype(x) != _F32 or not _is_where_positive(s, test, x):
        return False
    scaled = s.by(other, "Mul")
    pairs = [(1.0, other)]
    if scaled is not None:
        pairs += [(s.scalar(c), y) for c, y in either(scaled)]
    for alpha, grown in pairs:
        bounded = s.by(_expm1_of(s, grown) or "", "Min")
        if alpha is None or bounded is None:
            continue
        if bounded.inputs[0] == x and s.scalar(bounded.inputs[1]) == 0:
            return s.become(node, "Elu", [x], alpha=float(alpha))
    return False


def _selu(s: Any, node: Node) -> Found:
    """An Elu, times a number."""
    for factor, other in either(node):
        inner, gamma = s.by(other, "Elu"), s.scalar(factor)
        if inner is not None and gamma is not None and s.once(other):
            alpha = inner.attributes["alpha"]
            return s.become(node, "Selu", inner.inputs, alpha=alpha, gamma=float(gamma))
    return False


def _softplus(s: Any, node: Node) -> Found:
    """max(x, 0) + log(1 + exp(-|x|))."""
    if s.exact:
        return False
    for positive, rest in either(node):
        chosen = s.by(positive, "Where")
        power = s.by(_log1p_of(s, rest) or "", "Exp")
        turned = s.by(power.inputs[0], "Where") if power is not None else None
        if chosen is None or turned is None:
            continue
        x = chosen.inputs[1]
        negative = s.by(turned.inputs[1], "Neg")
        if negative is None or (negative.inputs[0], turned.inputs[2]) != (x, x):
            continue
        if s.scalar(chosen.inputs[2]) != 0 or not s.has_kernel("Softplus", x):
            continue
        if _is_where_positive(s, chosen.inputs[0], x) and chosen.inputs[0] == turned.inputs[0]:
            return s.become(node, "Softplus", [x])
    return False


def _large_softplus(s: Any, node: Node) -> Found:
    """Where(x > 20, x, softplus(x)): it is x there anyway."""
    test, x, other = node.inputs
    compared, inner = s.by(test, "Greater"), s.by(other, "Softplus")
    if compared is None or inner is None or inner.inputs[0] != x or compared.inputs[0] != x:
        return False
    bound = s.scalar(compared.inputs[1])
    return other if bound is not None and bound >= 17 else False


def _gelu(s: Any, node: Node) -> Found:
    """x * (0.5 * erfc(-x / sqrt 2)), and x * sigmoid of a polynomial."""
    for x, weight in either(node):
        if not s.has_kernel("Gelu", x):
            continue
        half = s.by(weight, "Mul")
        if half is not None:
            for factor, rest in either(half):
                if s.scalar(factor) == 0.5 and _is_tail(s, rest, x):
                    return s.become(node, "Gelu", [x])
        gate = s.by(weight, "Sigmoid")
        if gate is not None and _tanh_argument(s, gate.inputs[0], x) is not None:
            return s.become(node, "Gelu", [x], approximate="tanh")
    return False


def _is_tail(s: Any, name: str, x: str) -> bool:
    """Say whether this is erfc(-x / sqrt 2), as a formula or as 1 - erf."""
    argument = s.formula(name, "Erfc")
    rest = s.by(name, "Sub")
    erf = s.by(rest.inputs[1], "Erf") if rest is not None else None
    if rest is not None and erf is not None and s.scalar(rest.inputs[0]) == 1:
        argument = erf.inputs[0]
    scaled = s.by(argument, "Mul")
    return scaled is not None and any(
        a == x and _near(s.scalar(c), -math.sqrt(0.5)) for a, c in either(scaled)
    )


def _gelu_by_exp(s: Any, node: Node) -> Found:
    """x / (1 + exp(-z)) with z of GELU by tanh, as y (a + b y^2): with two nodes less."""
    x, under = node.inputs
    total = s.by(under, "Add")
    for power, one in either(total) if total is not None else ():
        e = s.by(power, "Exp")
        turned = s.by(e.inputs[0], "Neg") if e is not None else None
        y = _tanh_argument(s, turned.inputs[0], x) if turned is not None else None
        if y is None or s.scalar(one) != 1:
            continue
        dtype, shape = s.dtype(x), s.shape(x)
        a, b = [s.constant(np.array(v, dtype)) for v in (-_TANH, -_TANH * _CUBIC)]
        written = s.new("Mul", [y, y], dtype, shape)
        for op, other in (("Mul", b), ("Add", a), ("Mul", y)):
            written = s.new(op, [written, other], dtype, shape)
        written = s.new("Exp", [written], dtype, shape)
        return s.become(node, "Div", [x, s.new("Add", [written, one], dtype, shape)])
    return False


_TANH, _CUBIC = math.sqrt(8 / math.pi), 0.044715


def _tanh_argument(s: Any, name: str, x: str) -> str | None:
    """Return y, which is x or x within bounds, of sqrt(8 / pi) (y + 0.044715 y^3)."""
    outer = s.by(name, "Mul")
    for factor, total in either(outer) if outer is not None else ():
        added = s.by(total, "Add")
        if added is None or not _near(s.scalar(factor), _TANH):
            continue
        for inner, cubic in either(added):
            bound = s.by(inner, "Clip")
            if inner != x and (bound is None or bound.inputs[0] != x):
                continue
            scaled = s.by(cubic, "Mul")
            for c, power in either(scaled) if scaled is not None else ():
                if _near(s.scalar(c), _CUBIC) and _is_cube(s, power, inner):
                    return inner
    return None


def _is_cube(s: Any, name: str, x: str) -> bool:
    product = s.by(name, "Mul")
    if product is None:
        power = s.by(name, "Pow")
        return power is not None and power.inputs[0] == x and s.scalar(power.inputs[1]) == 3
    for square, other in either(product):
        inner = s.by(square, "Mul")
        if other == x and inner is not None and inner.inputs == (x, x):
            return True
    return False


def _hard_sigmoid(s: Any, node: Node) -> Found:
    """Clip(x + 3, 0, 6) / 6."""
    clip = s.by(node.inputs[0], "Clip")
    if s.exact or clip is None or s.scalar(node.inputs[1]) != 6:
        return False
    if [s.scalar(n) for n in clip.inputs[1:]] != [0, 6]:
        return False
    total = s.by(clip.inputs[0], "Add")
    if total is None or not s.has_kernel("HardSwish", clip.inputs[0]):
        return False
    for x, three in either(total):
        if s.scalar(three) == 3 and keeps_shape(s, x, three):
            return s.become(node, "HardSigmoid", [x], alpha=1 / 6, beta=0.5)
    return False


def _hard_swish(s: Any, node: Node) -> Found:
    """x * hardsigmoid(x)."""
    for x, gate in either(node):
        hard = s.by(gate, "HardSigmoid")
        if hard is not None and hard.inputs[0] == x and _near(hard.attributes["alpha"], 1 / 6):
            return s.become(node, "HardSwish", [x])
    return False


RULES: dict[str, tuple[Any, ...]] = {
    "Add": (_softplus,),
    "Div": (_hard_sigmoid, _gelu_by_exp),
    "Mul": (_gelu, _hard_swish, _selu),
    "Where": (_sloped, _elu, _large_softplus),
}
