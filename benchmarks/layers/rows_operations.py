"""Rows of operations that networks use beside layers: sorting, cumulating, picking, adding up."""

from __future__ import annotations

from benchmarks.layers.row import Row, distinct, integers, normal, of, uniform

__all__ = ["OPERATIONS"]

ROWS = (of(distinct(32, 100)), of(distinct(64, 1000)), of(distinct(64, 8192)))
WORDS = (of(distinct(8, 1000)), of(distinct(32, 8192)), of(distinct(32, 50257)))
SCANNED = (of(distinct(8, 64, 32)), of(distinct(8, 256, 128)), of(distinct(8, 1024, 512)))

OPERATIONS = [
    Row("sort", "sort", ROWS),
    Row("argsort", "argsort", ROWS, slope=False),
    Row("top-k", "top_k", WORDS, {"k": 40}),
    Row("argmax", "argmax", WORDS, slope=False),
    Row("cumsum", "cumsum", SCANNED, {"axis": 1}),
    Row(
        "cumprod",
        "cumprod",
        tuple(of(uniform(*one.inputs[0].shape, low=0.97, high=1.03)) for one in ROWS),
        {"axis": -1},
    ),
    Row("cummax", "cummax", SCANNED, {"axis": 1}),
    Row("logsumexp", "logsumexp", WORDS, {"axis": -1}),
    Row("variance", "variance", SCANNED, {"axis": -1}),
    Row("norm", "norm", SCANNED, {"axis": -1}),
    Row(
        "one-hot",
        "one_hot",
        tuple(
            of(integers(count, batch), num_classes=count)
            for batch, count in ((32, 10), (256, 1000), (512, 8192))
        ),
        slope=False,
    ),
    Row(
        "gather",
        "gather",
        tuple(
            of(normal(batch, count), integers(count, batch, picked))
            for batch, count, picked in ((32, 100, 10), (64, 1000, 100), (64, 8192, 2048))
        ),
    ),
    Row(
        "segment-sum",
        "segment_sum",
        tuple(
            of(normal(edges, size), integers(nodes, edges), num_segments=nodes)
            for edges, size, nodes in ((500, 16, 100), (10000, 64, 2708), (50000, 128, 10000))
        ),
    ),
    Row(
        "masked-fill",
        "masked_fill",
        tuple(
            of(normal(*shape), integers(2, *shape))
            for shape in ((2, 4, 32, 32), (4, 12, 128, 128), (4, 12, 512, 512))
        ),
    ),
    Row(
        "einsum",
        "einsum",
        tuple(
            of(normal(batch, length, count, size), normal(batch, length, count, size))
            for batch, length, count, size in ((2, 32, 4, 16), (4, 128, 8, 32), (2, 512, 12, 64))
        ),
    ),
]
