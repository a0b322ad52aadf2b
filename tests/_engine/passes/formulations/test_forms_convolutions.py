"""Formulations of a mapped convolution: all give the same, and when each is offered."""

import numpy as np
import pytest

import stretto as st
from stretto._engine.core.cost import CPU
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import array_type
from stretto._engine.kernels import kernels
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import conv_dimension_numbers
from stretto._engine.passes.formulations.forms import (
    MOST_WRITTEN,
    Parts,
    Shared,
    Whole,
    convolution_fraction,
    of_convolution,
)

SIZE = 3


@pytest.fixture(autouse=True)
def _without_kernels():
    """Estimate the forms that convolutions have without kernels."""
    with st.config(kernels=False):
        yield


def convolution(layout, strides=(1, 1), padding=((0, 0), (0, 0)), rest=((1, 1), (1, 1)), groups=1):
    spec = conv_dimension_numbers((1,) * 4, (1,) * 4, layout)
    return ConvGeneralDilated(strides, padding, *rest, spec, groups)


FIRST, LAST = ("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")
MIXED = ("HNWC", "WHIO", "CWNH")
# Name: the operation, and the shapes of one member's image and kernel.
CONVOLUTIONS = {
    "plain": (convolution(LAST), (2, 5, 6, 3), (3, 2, 3, 4)),
    "strides": (convolution(FIRST, (2, 3), ((1, 0), (2, 1))), (2, 3, 5, 6), (4, 3, 3, 2)),
    "dilations": (
        convolution(FIRST, (1, 2), ((1, 2), (0, 3)), ((2, 1), (1, 2))),
        (2, 3, 4, 5),
        (4, 3, 2, 3),
    ),
    "layout": (convolution(MIXED, (2, 1), ((1, 1), (0, 2))), (5, 2, 6, 3), (3, 2, 3, 4)),
    "cropped": (convolution(LAST, padding=((-1, 2), (0, -2))), (1, 6, 6, 2), (2, 3, 2, 3)),
    "groups": (convolution(LAST, groups=2), (2, 4, 4, 4), (2, 2, 2, 6)),
}


def numbers(seed, *shape):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def operand(kind, values):
    if kind == "shared":
        return Shared(as_value(values[0]))
    if kind == "parts":
        return Parts([as_value(v) for v in values])
    return Whole(as_value(np.moveaxis(values, 0, 2)), 2)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_every_formulation_gives_the_convolution_of_each_member(name):
    op, *shapes = CONVOLUTIONS[name]
    images, kernels = (numbers(i, SIZE, *shape) for i, shape in enumerate(shapes))
    for kinds in [("whole", "parts"), ("shared", "whole"), ("parts", "shared")]:
        choices = of_convolution(
            op, operand(kinds[0], images), operand(kinds[1], kernels), SIZE, CPU
        )
        want = [
            op(
                as_value(images[0 if kinds[0] == "shared" else i]),
                as_value(kernels[0 if kinds[1] == "shared" else i]),
            )
            for i in range(SIZE)
        ]
        for choice in choices:
            value = choice.run()
            for i in range(SIZE):
                np.testing.assert_array_equal(value.member(i), want[i], err_msg=choice.form.value)
            assert 0 < choice.microseconds < np.inf


def offered(name, kinds, size=SIZE):
    op, *shapes = CONVOLUTIONS[name]
    pair = [operand(k, np.zeros((size, *s), np.float32)) for k, s in zip(kinds, shapes)]
    return [c.form.value for c in of_convolution(op, *pair, size, CPU)]


def test_members_that_share_the_kernel_are_more_images_or_in_turn():
    for name in CONVOLUTIONS:
        assert offered(name, ("whole", "shared")) == ["members in turn", "one wide convolution"]


def test_windows_are_laid_out_where_they_are_small_and_there_are_no_groups():
    once = "matrix products of windows laid out once"
    assert once in offered("plain", ("shared", "whole"))
    assert once not in offered("plain", ("whole", "whole"))
    assert not [n for n in offered("groups", ("shared", "whole")) if "windows" in n]
    image, kernels = np.zeros((2, 1, 20, 20, 1), "f4"), np.zeros((2, 9, 9, 1, 1), "f4")
    for side, is_offered in [(9, False), (8, True)]:  # of 81 and of 64 elements
        kernel = kernels[:, :side, :side]
        both = operand("shared", image), Whole(as_value(kernel), 0)
        choices = of_convolution(convolution(LAST), *both, 2, CPU)
        assert any("windows" in c.form.value for c in choices) is is_offered
    for width, is_offered in [(65, False), (64, True)]:
        image, kernel = np.zeros((1, 1, 80, 1), "f4"), np.zeros((2, 1, width, 1, 1), "f4")
        both = Shared(as_value(image)), Whole(as_value(kernel), 0)
        choices = of_convolution(convolution(LAST), *both, 2, CPU)
        assert any("windows" in c.form.value for c in choices) is is_offered


@pytest.mark.parametrize(
    ("features", "times"), [(1, 5), (2, 5), (4, 4), (10, 1.6), (16, 1), (20, 1)]
)
def test_windows_of_few_features_take_up_to_five_times_as_long_to_lay_out(features, times):
    image = np.zeros((1, 10, 10, features), "f4")
    kernel = np.zeros((2, 3, 3, features, 4), "f4")
    op, both = convolution(LAST), (Shared(as_value(image)), Whole(as_value(kernel), 0))
    time = lambda machine: {
        c.form.value: c.microseconds for c in of_convolution(op, *both, 2, machine)
    }["matrix products of windows laid out once"]
    free = CPU._replace(near=1e30, shared=1e30, far=1e30)
    laid_out = 2 * 8 * 8 * 9 * features * 4 / CPU.shared
    cut = CPU.copying(kernel.nbytes)  # into those of the members
    assert time(CPU) - time(free) == pytest.approx(times * laid_out + cut)


def test_not_too_many_members_are_written_out():
    both = ("whole", "whole")
    assert "members written out" in offered("plain", both, 64)
    assert offered("plain", both, 65) == [
        "members in turn",
        "one convolution with groups",
    ]
    assert "members written out" not in offered("plain", ("shared", "whole"), MOST_WRITTEN + 1)


@pytest.mark.parametrize(
    ("size", "form"), [(MOST_WRITTEN, Parts), (MOST_WRITTEN + 1, Whole)], ids=["few", "many"]
)
def test_many_members_multiply_windows_laid_out_once_in_turn(size, form):
    op, *shapes = CONVOLUTIONS["strides"]
    image, kernels = numbers(0, *shapes[0]), numbers(1, size, *shapes[1])
    (choice,) = [
        c
        for c in of_convolution(op, Shared(as_value(image)), Whole(as_value(kernels), 0), size, CPU)
        if "once" in c.form.value
    ]
    value = choice.run()
    assert isinstance(value, form)
    for i in (0, size - 1):
        np.testing.assert_array_equal(value.member(i), op(as_value(image), as_value(kernels[i])))


def test_the_rate_rises_with_the_input_features_up_to_a_bound():
    op = CONVOLUTIONS["plain"][0]

    def rate(inputs):
        image = array_type((2, 9, 9, inputs), np.dtype(np.float32))
        kernel = array_type((3, 3, inputs, 16), np.dtype(np.float32))
        return convolution_fraction(op, image, kernel, CPU)

    rates = [rate(n) for n in (1, 4, 50, 100)]
    assert rates == sorted(rates) and rates[0] > 0
    assert rates[-1] == rates[-2] < 1


@pytest.mark.parametrize(
    ("features", "kernel", "groups", "best"),
    [
        ((32, 32), 3, 32, "one convolution with groups"),  # sums of shifted slices
        ((1, 8), 3, 1, "one convolution with groups"),
        ((16, 32), 3, 1, "members written out"),  # groups of many
    ],
)
def test_the_estimate_follows_the_form_that_the_lowering_chooses(features, kernel, groups, best):
    inputs, outputs = features
    op = convolution(FIRST, padding=((1, 1), (1, 1)), groups=groups)
    images = Whole(as_value(numbers(0, 5, 4, inputs, 14, 14)), 0)
    kernels = Whole(as_value(numbers(1, 5, outputs, inputs // groups, kernel, kernel)), 0)
    choices = of_convolution(op, images, kernels, 5, CPU)
    assert min(choices, key=lambda c: c.microseconds).form.value == best


def test_many_groups_of_many_features_stay_slow_by_estimate():
    op = convolution(FIRST, groups=16)
    images, kernels = (
        Whole(as_value(numbers(i, 5, *shape)), 0)
        for i, shape in enumerate([(2, 128, 9, 9), (128, 8, 3, 3)])
    )
    times = {c.form.value: c.microseconds for c in of_convolution(op, images, kernels, 5, CPU)}
    assert times["one convolution with groups"] > 5 * times["members written out"]


FREE = CPU._replace(fresh=0.0, kernel=0.0, turn=0.0, near=1e30, shared=1e30, far=1e30)


def charged(x, y, machine=FREE):
    op, *shapes = CONVOLUTIONS["plain"]
    pair = [operand(k, np.zeros((SIZE, *s), "f4")) for k, s in zip((x, y), shapes)]
    return {c.form.value: c.microseconds for c in of_convolution(op, *pair, SIZE, machine)}


IMAGES, KERNELS, RESULTS = 2160, 864, 1440  # bytes of all members'
WINDOWS = 5 * 2 * 2160  # of one member, of three elements side by side: read and written


@pytest.mark.parametrize(
    ("x", "y", "stacked", "cut"),
    [("whole", "whole", 0, IMAGES + KERNELS), ("parts", "parts", IMAGES + KERNELS, 0),
     ("shared", "whole", 0, KERNELS), ("shared", "parts", KERNELS, 0),
     ("whole", "parts", KERNELS, IMAGES)],
)  # fmt: skip
def test_what_each_formulation_copies(x, y, stacked, cut):
    copying = FREE._replace(near=1.0, shared=1.0, far=1.0)  # a byte in a microsecond
    slow, fast = charged(x, y, copying), charged(x, y, FREE)
    copied = {name: slow[name] - fast[name] for name in fast}
    both = x != "shared"
    # Members are moved from the front to features, in runs of 3 and 4 elements, and back.
    moved = 5 * 2 * IMAGES * both + 4 * 2 * (KERNELS + RESULTS)
    expected = {
        "members in turn": 2 * stacked + (1.1 if both else 1.3) * SIZE * WINDOWS
            + IMAGES * both + KERNELS + RESULTS,
        "members written out": 2 * (cut + RESULTS) + SIZE * WINDOWS,
        **({"one convolution with groups": 2 * stacked + moved} if both else {
            "one wide convolution": 2 * stacked + moved + WINDOWS,
            "matrix products of windows laid out once": 2 * cut + WINDOWS}),
    }  # fmt: skip
    assert copied == pytest.approx(expected)


@pytest.mark.parametrize(
    ("figure", "in_turn", "written"), [("turn", SIZE, 0), ("kernel", 4 * SIZE, 10 * SIZE)]
)
def test_what_each_member_costs_beside_its_work(figure, in_turn, written):
    more, fast = (
        charged("whole", "whole", FREE._replace(**{figure: 1.0})),
        charged("whole", "whole"),
    )
    assert {name: more[name] - fast[name] for name in fast} == pytest.approx(
        {"members in turn": in_turn, "members written out": written,
         "one convolution with groups": 0}
    )  # fmt: skip


def test_windows_of_members_written_out_need_new_memory():
    fresh = FREE._replace(fresh=1.0, fresh_bytes=3 * 2160 - 1)
    more, fast = charged("whole", "whole", fresh), charged("whole", "whole")
    assert more["members written out"] - fast["members written out"] == pytest.approx(3 * 2160)
    assert more["members in turn"] == pytest.approx(fast["members in turn"])


@pytest.mark.skipif(kernels is None, reason="no kernels of ours here")
def test_kernels_read_and_write_members_where_they_lie():
    """So that nothing is moved into a loop."""
    machine = FREE._replace(near=1.0, shared=1.0, far=1.0)
    with st.config(kernels=True):
        ours = charged("whole", "whole", machine)["members in turn"]
    moved = IMAGES + KERNELS + RESULTS
    assert charged("whole", "whole", machine)["members in turn"] - ours >= moved * (1 - 1e-6)


def test_members_that_share_the_kernel_are_stacked():
    op, *shapes = CONVOLUTIONS["plain"]
    free = CPU._replace(fresh=0.0, near=1e30, shared=1e30, far=1e30)
    copying = free._replace(near=1.0, shared=1.0, far=1.0)
    for kind, copied in (("parts", 2 * IMAGES), ("whole", 0)):
        both = (
            operand(kind, np.zeros((SIZE, *shapes[0]), "f4")),
            operand("shared", np.zeros((1, *shapes[1]), "f4")),
        )
        slow, fast = [of_convolution(op, *both, SIZE, m)[1].microseconds for m in (copying, free)]
        assert slow - fast == pytest.approx(copied + SIZE * WINDOWS)


@pytest.mark.parametrize("empty", [(0, 3), (2, 0)], ids=["no images", "no features"])
def test_what_is_empty_takes_no_time_to_put_in_order(empty):
    batch, features = empty
    op = convolution(LAST)
    images = np.zeros((SIZE, batch, 5, 5, features), "f4")
    kernels = np.zeros((SIZE, 3, 3, features, 4), "f4")
    for kinds in [("whole", "whole"), ("shared", "whole"), ("whole", "shared")]:
        pair = operand(kinds[0], images), operand(kinds[1], kernels)
        for choice in of_convolution(op, *pair, SIZE, CPU):
            assert 0 <= choice.microseconds < np.inf


@pytest.mark.skipif(kernels is None, reason="no kernels of ours here")
def test_what_was_estimated_without_kernels_is_not_taken_with_them():
    op = convolution(FIRST, padding=((1, 1), (1, 1)))
    pair = [Whole(as_value(np.zeros(s, "f4")), 0) for s in ((3, 4, 7, 9, 9), (3, 5, 7, 3, 3))]

    def grouped():
        found = {c.form.value: c.microseconds for c in of_convolution(op, *pair, 3, CPU)}
        return found["one convolution with groups"]

    without = grouped()
    with st.config(kernels=True):
        assert grouped() < without
    assert grouped() == without
