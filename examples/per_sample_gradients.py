"""A gradient for each sample: PyTorch's tutorial, with the imports changed.

The loss of one sample is a function of the network's arrays; ``grad`` of it is the gradient of that
sample, and ``vmap`` gives those of a whole batch in one call. Differential privacy clips each of
them before they are averaged, as ``clipped`` does. Source: PyTorch's tutorial "Per-sample
gradients" of ``torch.func``. Run it: ``python examples/per_sample_gradients.py``.
"""

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.func import functional_call, grad, vmap

CLASSES = 10
F = nn.functional


class SimpleCNN(nn.Module):
    """Two convolutions and two layers, from images to a log-probability for each class."""

    def __init__(self, features=8):
        super().__init__()
        self.conv1 = nn.Conv2d(1, features, 3)
        self.conv2 = nn.Conv2d(features, 2 * features, 3)
        self.fc1 = nn.Linear(2 * features * 12 * 12, 32)
        self.fc2 = nn.Linear(32, CLASSES)

    def forward(self, x):
        """The log-probabilities, ``(images, CLASSES)``."""
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.flatten(F.max_pool2d(x, 2), 1)
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), 1)


def fake_batch(count):
    """Noise in the shape of MNIST, and random classes."""
    images = st.random.normal(st.random.next_key(), (count, 1, 28, 28))
    return images, st.random.randint(st.random.next_key(), (count,), 0, CLASSES)


def loss_of(model):
    """The loss of one sample, a function of the model's arrays."""

    def loss(params, buffers, sample, target):
        batch, targets = snp.expand_dims(sample, 0), snp.expand_dims(target, 0)
        return F.nll_loss(functional_call(model, (params, buffers), (batch,)), targets)

    return loss


def arrays_of(model):
    """Parameters and buffers by name."""
    return dict(model.named_parameters()), dict(model.named_buffers())


def one_by_one(model, images, targets):
    """The gradients in a loop over the samples, stacked."""
    gradient = grad(loss_of(model))
    params, buffers = arrays_of(model)
    return st.stack([gradient(params, buffers, x, y) for x, y in zip(images, targets, strict=True)])


def together(model, images, targets):
    """The same in one call: each array has an axis of samples in front."""
    gradients = vmap(grad(loss_of(model)), in_dims=(None, None, 0, 0))
    return st.jit(gradients)(*arrays_of(model), images, targets)


def clipped(gradients, most):
    """The mean gradient, after each sample's was scaled down to a norm of ``most``."""

    def clip(gradient):
        norm = st.optim.global_norm(gradient)
        return st.tree.map(lambda g: g * snp.minimum(1.0, most / norm), gradient)

    return st.tree.map(lambda g: snp.mean(g, 0), vmap(clip)(gradients))


def main(count=64):
    """The largest difference between both ways, and the gradients' norms."""
    st.random.manual_seed(0)
    model = SimpleCNN()
    images, targets = fake_batch(count)
    gradients = together(model, images, targets)
    difference = max(
        float(snp.max(snp.abs(a - b)))
        for a, b in zip(
            st.tree.leaves(gradients),
            st.tree.leaves(one_by_one(model, images, targets)),
            strict=True,
        )
    )
    norms = vmap(st.optim.global_norm)(gradients)
    print(f"{count} gradients together and in a loop differ by {difference:.1e} at most")
    print(f"their norms are {float(norms.min()):.2f} to {float(norms.max()):.2f}")
    return difference, norms


if __name__ == "__main__":
    main()
