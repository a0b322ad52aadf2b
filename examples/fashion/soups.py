"""Soups: which averages of weights are worth something, and which are not.

Next, read ``scoring``.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

import stretto as st
from examples.fashion.data import Part
from examples.fashion.scoring import predict
from stretto.ensemble import Soup, accuracy, greedy_soup, uniform_soup, update_batch_norm

__all__ = ["batches", "best_members", "copies", "soups"]


def batches(train: Part, size: int = 250, most: int = 8) -> list[np.ndarray]:
    """The images from which BatchNorm statistics are computed again."""
    images = train.images[: size * most]
    return [images[i : i + size] for i in range(0, len(images), size)]


def best_members(architecture: st.Ensemble, scores: np.ndarray) -> Any:
    """The member of an architecture with the best of these scores."""
    return architecture[int(np.argmax(scores))]


def copies(members: Iterable[Any], each: int) -> st.Ensemble:
    """An ensemble of this many copies of each of these members, to be trained separately."""
    return st.Ensemble([member for member in members for _ in range(each)])


def soups(
    group: st.Ensemble, scores: np.ndarray, images: list[np.ndarray], held_out: Part, key: Any
) -> tuple[Any, Soup]:
    """The mean of all members' weights, and that of those which make it no worse, best first.

    ``scores`` are the members' own accuracies on ``held_out``. Every average has its BatchNorm
    statistics computed again before it is used.
    """

    def renewed(member: Any) -> Any:
        return update_batch_norm(member, images, key=key)

    def score(member: Any) -> float:
        (logits,) = predict(st.Ensemble([renewed(member)]).eval(), held_out.images)
        return float(accuracy(logits, held_out.labels))

    greedy = greedy_soup(group, score, scores=scores)
    return renewed(uniform_soup(group)), greedy._replace(params=renewed(greedy.params))
