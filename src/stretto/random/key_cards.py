"""What is shown of typed keys: how many there are, of which implementation, and their words."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Tracer, Value
from stretto._engine.core.showing.cards import Card, counted, ends, line
from stretto.random.key_arrays import KeyArray

_MOST = 20
"""The most keys whose words are printed, of those in an array."""


def text_of(keys: KeyArray) -> str:
    """The ``repr`` of typed keys."""
    words: Any = keys._words
    shape = words.shape[:-1] if isinstance(words, Value) else np.shape(words)[:-1]
    return f"Array({shape}, dtype={keys.dtype}) overlaying:\n{_words(words)}"


def card_of(keys: KeyArray) -> Card:
    """Typed keys, with their words."""
    words: Any = keys._words
    shape = words.shape[:-1] if isinstance(words, Value) else np.shape(words)[:-1]
    count = int(np.prod(shape, dtype=int))
    body = tuple([line(text) for text in _words(words).split("\n")])
    implementation = keys._implementation.name
    return Card(f"{keys.dtype}{list(shape)}", (counted(count, "key"), implementation), body)


def _words(words: Value) -> str:
    """The words of keys, of some where there are many; or what stands for them."""
    array: Any = words
    if not isinstance(words, Value) or isinstance(words, Tracer) or array.is_deleted():
        return repr(words)
    if words.size <= _MOST * words.shape[-1]:
        return str(words)
    rows = np.asarray(words).reshape(-1, words.shape[-1])
    first, left_out, last = ends(range(len(rows)), _MOST)
    return f"{rows[list(first)]}\n... {left_out:,} more keys ...\n{rows[list(last)]}"
