"""Ten networks in one call: PyTorch's tutorial on model ensembling, with the imports changed.

``stretto.func`` has the names of ``torch.func``: ``stack_module_state`` stacks what the networks
hold, ``functional_call`` calls one of them with given arrays, and ``vmap`` maps that over the
stack, each network with a minibatch of its own or all with the same. The second part does so with
networks written in PyTorch, which ``st.from_torch`` brings here, where PyTorch is installed.
Source: PyTorch's tutorial "Model ensembling" of ``torch.func``. Run it:
``python examples/model_ensembling.py``.
"""

import importlib
import importlib.util

import numpy as np

import stretto as st
from stretto import nn
from stretto.func import functional_call, stack_module_state, vmap

CLASSES, BATCH = 10, 64
F = nn.functional


class SimpleMLP(nn.Module):
    """Three layers, from images to a logit for each class."""

    def __init__(self, width=128):
        super().__init__()
        self.fc1 = nn.Linear(784, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, CLASSES)

    def forward(self, x):
        """The logits, ``(images, CLASSES)``."""
        x = F.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def fake_images(count):
    """Noise in the shape of MNIST: minibatches, ``(count, BATCH, 1, 28, 28)``."""
    return st.random.normal(st.random.next_key(), (count, BATCH, 1, 28, 28))


def loops(models, minibatches):
    """Predictions, one network after the other: each with its own minibatch; all with the first."""
    own = [model(x) for model, x in zip(models, minibatches, strict=True)]
    shared = [model(minibatches[0]) for model in models]
    return own, shared


def together(models, minibatches):
    """The same predictions, all networks in one call."""
    params, buffers = stack_module_state(models)
    base = models[0]

    def call(params, buffers, x):
        return functional_call(base, (params, buffers), (x,))

    own = vmap(call, in_dims=(0, 0, 0))(params, buffers, minibatches)
    shared = vmap(call, in_dims=(0, 0, None))(params, buffers, minibatches[0])
    return own, shared


def largest_difference(models, minibatches):
    """How far the predictions together are from those of the loops, at most."""
    pairs = zip(together(models, minibatches), loops(models, minibatches), strict=True)
    return max(float(np.max(np.abs(np.subtract(a, b)))) for a, b in pairs)


def from_pytorch(count, width=128):
    """Networks of the same layers, written in PyTorch, and here as modules with its weights."""
    torch = importlib.import_module("torch")

    def one():
        return torch.nn.Sequential(
            torch.nn.Flatten(1),
            torch.nn.Linear(784, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, CLASSES),
        )

    originals = [one() for _ in range(count)]
    example = torch.zeros(BATCH, 1, 28, 28)
    return originals, [st.from_torch(model, example) for model in originals]


def main(count=10):
    """Compare both ways, for networks of both origins; the differences, the second may be None."""
    st.random.manual_seed(0)
    minibatches = fake_images(count)
    ours = largest_difference([SimpleMLP() for _ in range(count)], minibatches)
    print(f"{count} networks together and in a loop: logits differ by {ours:.1e} at most")
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed, so that there are no networks of its own to bring")
        return ours, None
    _, models = from_pytorch(count)
    theirs = largest_difference(models, minibatches)
    print(f"{count} networks of PyTorch's, the same: {theirs:.1e} at most")
    return ours, theirs


if __name__ == "__main__":
    main()
