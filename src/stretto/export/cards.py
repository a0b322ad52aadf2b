"""Cards and texts of artifacts: arguments, results and their types, operations and weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stretto._engine.core.cards import Card, Item, bytes_in, counted, ends, line, size, type_words

if TYPE_CHECKING:  # it names this module
    from stretto.export.artifact import Artifact

_MOST = 20
"""The most inputs, and the most outputs, that are shown."""


def text_of(artifact: Artifact) -> str:
    """Return the ``repr`` of an artifact: inputs and outputs with types, and how large it is."""
    lines = [*_typed(artifact.inputs, ""), *_typed(artifact.outputs, "-> ")]
    lines.append(", ".join(_facts(artifact)))
    return "\n  ".join([f"Artifact {artifact.__name__}", *lines])


def card_of(artifact: Artifact) -> Card:
    """Return the same, with the weights folded away."""
    body: list[Item] = [line(text) for text in _typed(artifact.inputs, "")]
    body += [line(text) for text in _typed(artifact.outputs, "-> ")]
    if artifact.weights:
        rows = [((f"{n}: ", ""), (type_words(x), "op")) for n, x in artifact.weights.items()]
        body.append(Card("weights", (counted(len(rows), "array"),), tuple(rows), open=False))
    return Card(f"Artifact {artifact.__name__}", tuple(_facts(artifact)), tuple(body))


def _typed(types: dict[str, Any], mark: str) -> list[str]:
    words = [
        f"{mark}{name}: {t.dtype.name}[{','.join(map(str, t.shape))}]" for name, t in types.items()
    ]
    first, left_out, last = ends(words, _MOST)
    return [*first, *([f"{mark}... {left_out:,} more"] if left_out else []), *last]


def _facts(artifact: Artifact) -> list[str]:
    contents, weights = artifact._contents, artifact.weights
    facts = [counted(len(contents.program.equations), "operation")]
    if contents.sizes:
        facts.append(f"any size {', '.join(map(str, contents.sizes))}")
    facts += [f"where {g.size} {'<' if g.holds else '>='} {g.less_than}" for g in contents.guards]
    held = f"weights of {size(bytes_in(weights.values()))}" if weights else "no weights"
    return [*facts, held]
