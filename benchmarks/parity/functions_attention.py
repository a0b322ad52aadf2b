"""Cases of attention."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.parity.case import Case, called
from benchmarks.parity.draw import Draw, Families

__all__ = ["families", "masks"]

families = Families()


@families.add("scaled_dot_product_attention")
def attention(draw: Draw, name: str) -> Case:
    heads, length, keys = draw.choice(2, 4), 5, draw.choice(5, 6)
    settings: dict[str, Any] = {}
    if draw.chance(0.3):
        settings["scale"] = 0.7
    lead = draw.choice((), (3,), (2, heads), (2, 1, 4))
    shared = lead
    if draw.chance(0.3):
        lead, shared = (2, heads), (2, draw.choice(1, 2, heads))
        settings["enable_gqa"] = True
    arrays = [draw.normal(*lead, length, 8), draw.normal(*shared, keys, 8)]
    arrays.append(draw.normal(*shared, keys, draw.choice(8, 3)))
    match draw.choice("none", "causal", "float", "bool"):
        case "causal":
            settings["is_causal"] = True
        case "float":
            arrays.append(draw.normal(length, keys))
        case "bool":
            mask = draw.mask(0.6, length, keys)
            mask[0] = draw.chance(0.5)  # a row that sees nothing
            settings["attn_mask"] = mask
    return called(name, *arrays, **settings)


def masks(draw: Draw, length: int, keys: int, batch: tuple[int, ...]) -> dict[str, NDArray[Any]]:
    """A mask of pairs, one of keys, both or none; every query sees the first key."""
    arguments: dict[str, NDArray[Any]] = {}
    if draw.chance(0.5):
        causal = np.triu(np.ones((length, keys), bool), 1)
        arguments["attn_mask"] = causal if draw.chance(0.5) else draw.normal(length, keys)
    if draw.chance(0.4):
        padding = np.zeros((*batch, keys), bool)
        padding[..., keys - 2 :] = True
        arguments["key_padding_mask"] = padding
    return arguments


@families.add("multi_head_attention_forward")
def multi_head(draw: Draw, name: str) -> Case:
    e, length, keys, batch = 8, 5, 6, draw.choice((), (3,))
    bias, separate = draw.chance(0.6), draw.chance(0.3)
    more = bias and not separate and draw.chance(0.4)  # a key and a value that are trained
    widths = (3, 5) if separate else (e, e)
    settings: dict[str, Any] = {
        "need_weights": draw.chance(0.6),
        "average_attn_weights": draw.chance(0.5),
        **masks(draw, length, keys, batch),
    }
    if separate:
        settings |= {
            "use_separate_proj_weight": True,
            "q_proj_weight": draw.normal(e, e) / 4,
            "k_proj_weight": draw.normal(e, 3) / 4,
            "v_proj_weight": draw.normal(e, 5) / 4,
        }
    return called(
        name,
        draw.normal(length, *batch, e),
        draw.normal(keys, *batch, widths[0]),
        draw.normal(keys, *batch, widths[1]),
        e,
        draw.choice(2, 4),
        None if separate else draw.normal(3 * e, e) / 4,
        draw.normal(3 * e) if bias else None,
        draw.normal(1, 1, e) if more else None,
        draw.normal(1, 1, e) if more else None,
        draw.chance(0.3),
        0.0,
        draw.normal(e, e) / 4,
        draw.normal(e) if bias else None,
        **settings,
    )
