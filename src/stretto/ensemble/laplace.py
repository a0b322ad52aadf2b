"""``fit_laplace``: the posterior of a trained network's weights as a Gaussian around them.

``precisions`` has its shapes, ``gaussian`` what is predicted, ``linearised`` the members drawn from
it. The curvature is that of ``stretto.curvature``.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

import stretto.ensemble
import stretto.numpy as snp
from stretto import lax, random, tree
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.integers import count
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.lazy import brief
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.typing import Array, ArrayLike, Key, Tree
from stretto.curvature.likelihoods import Likelihood, LikelihoodLike, likelihood_of
from stretto.curvature.parts import Choice
from stretto.ensemble.calibration import minimize
from stretto.ensemble.ensemble import Ensemble
from stretto.ensemble.gaussian import Gaussian, bridge, log_mean_over_draws, mean_over_draws, probit
from stretto.ensemble.groups import Member, Ties, retied, ties_of
from stretto.ensemble.linearised import LinearisedEnsemble, of_model, widened
from stretto.ensemble.posterior import Posterior, draws_of, fit_posterior, predictive
from stretto.nn.functional.activations import sigmoid
from stretto.nn.module import Module
from stretto.numpy.normalized import softmax

__all__ = ["Laplace", "fit_laplace"]

STRUCTURES = ("full", "kron", "diagonal", "low_rank")
LINKS = ("sampled", "probit", "bridge")


def fit_laplace(
    model: Tree,
    data: Tree,
    *,
    likelihood: LikelihoodLike = "categorical",
    structure: Literal["full", "kron", "diagonal", "low_rank"] = "kron",
    weights: str | Sequence[str] | Callable[[str], bool] = "*",
    prior_precision: float | ArrayLike | Mapping[str, ArrayLike] = 1.0,
    noise: float | ArrayLike | None = None,
    batch_size: int = 256,
    rank: int = 20,
    key: Key | None = None,
) -> Laplace:
    """Fit a Gaussian to the posterior of a trained network's weights (Laplace's approximation).

    N(θ*, P⁻¹) with P = Σ JᵀΛJ/σ² + δ: the generalised Gauss-Newton matrix of the loss, a sum over
    all examples, and the precision of the prior N(0, 1/δ). The weights must be near a maximum of
    the posterior that has this prior and this noise: of −Σ log p(y|f) + δ‖θ‖²/2. Where the loss of
    training was the mean over N examples, with a weight decay λ, that is δ = N λ, and for a mean of
    squared errors, without ½, it is δ σ² = N λ / 2. ``Laplace.implied_prior_precision`` says which
    δ the weights themselves show.

    Args:
        model: a module in evaluation mode, one imported of PyTorch, a pair ``(apply, params)`` of a
            function ``apply(params, x)`` and its tree, or an ``Ensemble`` of one architecture,
            whose members are fitted by one program.
        data: all that the model was trained on: a tuple (x, y) of arrays whose axis 0 are the
            examples, or an iterable of such batches. Several inputs are a tuple or another tree as
            the model takes it, and y may be one for a function ``nll(f, y)``.
        likelihood: ``"categorical"`` (logits, integer labels), ``"bernoulli"`` (one logit),
            ``"gaussian"``, ``"heteroscedastic"``, or a function ``nll(f, y)`` of one example.
        structure: the shape of H: ``"kron"``, a Kronecker product for each weight; ``"full"``;
            ``"diagonal"``; or ``"low_rank"``, its ``rank`` largest eigenvalues.
        weights: the weights that are uncertain: patterns of dotted names, ``"last"`` for those of
            the last layer, or a function of a name. The others stay as they are; frozen ones are
            uncertain unless these leave them out.
        prior_precision: δ, positive: a number for all weights, or one for each by name.
        noise: σ, the standard deviation of a Gaussian's targets, which it needs, and only it has.
        batch_size: examples at a time, at most; fewer where Jacobians are large. Sums are over
            all, whatever it is.
        rank: the number of eigenvalues of ``"low_rank"``, or that of the weights if it is less.
        key: for ``"low_rank"``, where the search for them begins.

    Returns:
        The posterior, an immutable tree.

    Raises:
        ValueError: an argument is out of range, the shapes of the examples do not match, targets
            have no density (a label that is no class, NaN), or a module is in train mode where that
            matters (batch normalization, dropout).
        TypeError: the model is none of these, its outputs are not real, or ``batch_size`` no
            integer.
        MemoryError: the arrays would not fit; the message has their size.
        NotImplementedError: a weight cannot be factored, with its name; or an ensemble has several
            architectures.

    Sources: Daxberger et al., "Laplace redux", 2021; Immer et al., "Improving predictions of
    Bayesian neural nets via local linearization", 2021.

    >>> import stretto as st, stretto.numpy as snp
    >>> x = snp.array([[-1.0], [0.0], [1.0]])
    >>> line = lambda w, x: x * w
    >>> laplace = fit_laplace(
    ...     (line, snp.array(2.0)), (x, 2 * x), likelihood="gaussian", noise=1.0, structure="full"
    ... )
    >>> laplace.predict(snp.array([[3.0]])).variance  # x² / (Σ x² + 1)
    Array([[3.]], dtype=float32)
    """
    if structure not in STRUCTURES:
        raise ValueError(
            f"fit_laplace: structure must be one of {', '.join(map(repr, STRUCTURES))}, got "
            f"{structure!r}"
        )
    known = likelihood_of(likelihood)
    if (noise is not None) != (known.name == "gaussian"):
        raise ValueError(
            "fit_laplace: likelihood='gaussian' needs noise=, the standard deviation of the targets"
            if noise is None
            else f"fit_laplace: noise= is the standard deviation of likelihood='gaussian'; "
            f"{known.name!r} has none"
        )
    model, (x, y) = model_of(model, "fit_laplace"), _examples(data, "fit_laplace")
    batch_size = count(batch_size, "fit_laplace", "batch_size", 1)
    chosen = weights if isinstance(weights, str) or callable(weights) else tuple(weights)
    ties = ties_of(model)
    fitted = _fit(model, ties, x, y, key, known, structure, chosen, batch_size, rank)
    _refuse_targets(known, y, fitted.loss)
    targets = math.prod(y.shape) if known.name == "gaussian" else None
    laplace = Laplace(model, fitted, known, structure, chosen, targets, ties)
    return laplace._with(prior_precision, 1.0 if noise is None else noise, "fit_laplace")


def model_of(model: Tree, caller: str) -> Tree:
    """Return a model as one tree."""
    if isinstance(model, tuple) and len(model) == 2 and callable(model[0]):
        return Member(*model)
    if isinstance(model, Ensemble) and len(model.groups) > 1:
        raise NotImplementedError(
            f"{caller}: the ensemble has members of {len(model.groups)} architectures, whose "
            f"arrays are not stacked: fit one for each of ensemble.groups"
        )
    if not isinstance(model, (Module, Ensemble, Member)):
        raise TypeError(
            f"{caller}: expected a module, a pair (apply, params) or an Ensemble, got a "
            f"{type(model).__module__}.{type(model).__name__}; what is PyTorch's comes in by "
            f"st.from_torch"
        )
    return model


def _inputs(x: Tree, caller: str) -> Tree:
    """Return inputs as arrays; a tuple of several arguments stays one."""
    return widened(tree.map(lambda leaf: as_value(leaf, caller, "x"), x))


def _examples(data: Tree, caller: str) -> tuple[Tree, Tree]:
    """Return all inputs and targets, with as many examples."""
    batches = [data] if isinstance(data, tuple) else list(data)
    for batch in batches or [()]:
        if not isinstance(batch, (tuple, list)) or len(batch) != 2:
            what = "" if batches == [data] else "batches of "
            many = f" of {len(batch)}" if isinstance(batch, (tuple, list)) else ""
            raise ValueError(
                f"{caller}: data must be a tuple (x, y) of arrays, or an iterable of such batches; "
                f"got {what}{type(batch).__name__}{many}: of several inputs x is a tuple"
            )
    parts = [tree.map(lambda leaf: as_value(leaf, caller, "data"), tuple(b)) for b in batches]
    for part in parts:
        found = [leaf.type for leaf in tree.leaves(part)]
        if len({t.shape[:1] for t in found}) != 1 or not found[0].shape or not found[0].shape[0]:
            raise ValueError(
                f"{caller}: expected as many targets as inputs along axis 0, and at least one; got "
                f"{', '.join(map(str, found)) or 'no arrays'}"
            )
    x, y = parts[0] if len(parts) == 1 else tree.concat(parts)
    return widened(x), widened(y)


def _refuse_targets(likelihood: Likelihood, y: Tree, loss: Array) -> None:
    """Raise ``ValueError`` for targets that the likelihood has no density for, if all is known."""
    if isinstance(loss, Tracer):
        return
    if likelihood.name == "bernoulli":
        outside = y[~((y >= 0) & (y <= 1))]
        if outside.size:
            raise ValueError(
                f"fit_laplace: targets of 'bernoulli' must be 0 or 1, got {outside.ravel()[0]}"
            )
    if not bool(snp.any(snp.isfinite(loss))):
        what = "from 0 on, below the number of classes" if likelihood.name == "categorical" else ""
        raise ValueError(
            f"fit_laplace: -log p(y|f) of the data is {snp.ravel(loss)[0]}: inputs, weights and "
            f"targets must be finite{what and f', and labels {what}'}; leave out examples that "
            f"have no target, or give a function nll(f, y) as likelihood= that is 0 for them"
        )


@brief
@register_dataclass
@dataclasses.dataclass(frozen=True)
class Laplace:
    """A Gaussian posterior of weights, made by ``fit_laplace``.

    Predictions are those of the network made linear in its weights at θ*, f(x; θ*) + J(x) (θ − θ*)
    (2008.08400). All methods but ``save`` and ``load`` work under ``jit``. Of an ensemble each
    member has a posterior of its own, and what a method gives has an axis of members in front where
    it does not say otherwise.

    >>> import stretto as st, stretto.numpy as snp
    >>> x = snp.array([[-1.0], [1.0]])
    >>> line = lambda w, x: x * w
    >>> laplace = st.ensemble.fit_laplace(
    ...     (line, snp.array(1.0)), (x, x), likelihood="gaussian", noise=1.0, structure="full"
    ... )
    >>> laplace.members(st.random.key(0), 5)(x).shape
    (5, 2, 1)
    """

    model: Any
    """The network: a module, a ``Member``, or an ``Ensemble``."""
    _posterior: Posterior
    likelihood: Likelihood = dataclasses.field(metadata={"static": True})
    """What targets are given outputs."""
    structure: str = dataclasses.field(metadata={"static": True})
    """The shape of the curvature, as ``fit_laplace`` was told."""
    weights: Any = dataclasses.field(metadata={"static": True})
    """Which weights are uncertain, as ``fit_laplace`` was told."""
    _targets: int | None = dataclasses.field(metadata={"static": True})
    _ties: Ties = dataclasses.field(default=(), metadata={"static": True})

    @property
    def prior_precision(self) -> dict[str, Array]:
        """δ of each weight, by name."""
        return self._posterior.prior_precision

    @property
    def noise(self) -> Array:
        """σ of the targets; 1 where the likelihood has none."""
        return self._posterior.noise

    @property
    def implied_prior_precision(self) -> Array:
        """The δ of which these weights are the maximum along θ*: −θ*·∇log p(y|θ*) / ‖θ*‖².

        N times what was given says that the loss of training was a mean where a sum is meant, or
        the other way round; a negative or quite other number that training had not ended, or had
        another prior.
        """
        squares = snp.sum(snp.stack(list(self._posterior.squares.values())), 0)
        return -self._posterior.slope * self._posterior.spread / squares

    def _each(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of posteriors, and of trees alike, for all members."""
        return vmap(f) if isinstance(self.model, Ensemble) else f

    def _own_keys(self, key: Key) -> Key:
        """Return the key of each member, ``split(key, members)``; itself of one network."""
        return random.split(key, len(self.model)) if isinstance(self.model, Ensemble) else key

    def _with(self, prior_precision: Tree, noise: Tree, caller: str) -> Laplace:
        """Return the posterior with another prior and noise; ``None`` is as before."""
        old = self._posterior
        size = old.loss.shape

        def checked(x: Tree, name: str) -> Array:
            value = as_value(x, caller, name).astype(old.loss.dtype)
            if value.shape not in ((), size):
                one = f"a number, or one for each of {size[0]} members" if size else "a number"
                way = "; outputs that differ in it have a function nll(f, y) as likelihood="
                raise ValueError(
                    f"{caller}: {name} must be {one}, got {value.type}{way * (name == 'noise')}"
                )
            if not isinstance(value, Tracer) and not bool(snp.all(value > 0)):
                raise ValueError(f"{caller}: {name} must be positive, got {x}")
            return snp.broadcast_to(value, size)

        names = list(old.squares)
        prior = prior_precision
        if prior is None:
            prior = old.prior_precision
        elif isinstance(prior, Mapping):
            if set(prior) != set(names):
                raise ValueError(
                    f"{caller}: prior_precision must have an entry for each of "
                    f"{', '.join(names)}; got {', '.join(map(str, prior)) or 'none'}"
                )
            prior = {n: checked(prior[n], f"prior_precision[{n!r}]") for n in names}
        else:
            prior = dict.fromkeys(names, checked(prior, "prior_precision"))
        sigma = old.noise if noise is None else checked(noise, "noise")
        changed = dataclasses.replace(old, prior_precision=prior, noise=sigma)
        return dataclasses.replace(self, _posterior=changed)

    # Predictions

    def predict(self, x: Tree, joint: bool = False, noise: bool = False) -> Gaussian:
        """Predict the outputs: the network's, and J P⁻¹ Jᵀ.

        Args:
            x: a batch of inputs.
            joint: give the covariance between examples, too.
            noise: predict targets: with σ² added to the variances. Of ``"heteroscedastic"`` that
                is the mean of e^f of its second output, and the outputs are the first.

        Returns:
            Distributions of mean (batch, outputs) and covariance (batch, outputs, outputs); with
                ``joint`` one of covariance (batch, outputs, batch, outputs). Of an ensemble
                (members, batch, ...): ``predict(x).mixture()`` is the Gaussian that has the mean
                and the covariance of the mixture.

        Raises:
            MemoryError: the covariance would not fit; the message has its size.
            ValueError: ``noise`` is asked for where the likelihood has none.
        """
        if noise and self.likelihood.name not in ("gaussian", "heteroscedastic"):
            raise ValueError(
                f"Laplace.predict: noise=True is for targets that are numbers; the likelihood is "
                f"{self.likelihood.name!r}"
            )
        return _predict(self, _inputs(x, "Laplace.predict"), joint, noise)

    def probabilities(
        self,
        x: Tree,
        key: Key | None = None,
        link: Literal["sampled", "probit", "bridge"] = "sampled",
        *,
        samples: int = 1000,
    ) -> Array:
        """Predict the probabilities of the classes; of an ensemble the mean of the members'.

        ``"sampled"`` is the mean of softmax over draws of the logits, whose error falls as
        1/√samples. The draws are of the Gaussian of each example, or, where there are more outputs
        than draws, of the weights. ``"probit"`` and ``"bridge"`` need no key, and are off by up to
        0.11 and 0.26; probit also moves with noise that is common to all logits, which softmax
        ignores.

        Args:
            x: a batch of inputs.
            key: that of the draws.
            link: ``"sampled"``, ``"probit"`` (MacKay, 1992) or ``"bridge"`` (Hobbhahn et al.,
                2022).
            samples: how many draws.

        Returns:
            (batch, classes, ...); of ``"bernoulli"`` the probabilities of 1, as the logits.

        Raises:
            ValueError: the likelihood has no classes, ``link`` is unknown, or the key is missing.
            TypeError: ``samples`` is no integer.
        """
        caller = "Laplace.probabilities"
        if self.likelihood.name not in ("categorical", "bernoulli"):
            raise ValueError(
                f"{caller}: likelihood {self.likelihood.name!r} has no classes; predict(x) gives "
                f"means and covariances"
            )
        if link not in LINKS:
            raise ValueError(
                f"{caller}: link must be one of {', '.join(map(repr, LINKS))}, got {link!r}"
            )
        if link == "bridge" and self.likelihood.name == "bernoulli":
            raise ValueError(f"{caller}: link='bridge' is for the logits of several classes")
        if link == "sampled" and key is None:
            raise ValueError(f"{caller}: link='sampled' needs key=, a key for its draws")
        samples = count(samples, caller, "samples", 1)
        return _probabilities(self, _inputs(x, caller), key, link, samples)

    def members(self, key: Key, n: int) -> LinearisedEnsemble:
        """Draw members: networks linear in their weights, which are draws of the posterior.

        Args:
            key: the key of the draws.
            n: how many; of an ensemble, from the posterior of each member.

        Returns:
            An ensemble to be called; of an ensemble of M members one of M·n, the mixture.

        Raises:
            ValueError: ``n`` is below 1.
            TypeError: ``n`` is no integer.
        """
        n = count(n, "Laplace.members", "n", 1)
        return LinearisedEnsemble(self.model, _draws(self, key, n), self.weights, self._ties)

    def sample(self, key: Key, n: int) -> Ensemble:
        """Draw weights, and put them into the network, which is too wide for prediction.

        Away from θ* the network is not linear, and what the data do not determine is spread as the
        prior has it: the deviations of predictions were 17 times those of the posterior where
        ``members`` had 1.08 times. It is meant for looking at weights, and for starting chains.

        Args:
            key: the key of the draws, which are those of ``members``.
            n: how many; of an ensemble, from the posterior of each member.

        Returns:
            The networks, as an ensemble of n, or of M·n.

        Raises:
            ValueError: the members of an ensemble share weights that are uncertain, or ``n`` is
                below 1.
            TypeError: ``n`` is no integer.
        """
        n = count(n, "Laplace.sample", "n", 1)
        differences = _draws(self, key, n)
        if isinstance(self.model, Ensemble):
            size = len(self.model)
            many = self.model[np.repeat(np.arange(size), n).tolist()]
            differences = {m: x.reshape(-1, *x.shape[2:]) for m, x in differences.items()}
        else:
            one = self.model
            if isinstance(one, Member):
                single = Ensemble(one.function, [one.params])
            else:
                single = Ensemble([retied(one.clone(), self._ties)])
            many = single[[0] * n]
        (arrays,) = many.state_dict()
        for name, x in differences.items():
            if arrays[name].shape != x.shape:
                raise ValueError(
                    f"Laplace.sample: the members share {name}, of which each draw has its own; "
                    f"members() keeps them apart"
                )
        moved = {m: (arrays[m] + x).astype(arrays[m].dtype) for m, x in differences.items()}
        return many.replace([moved])

    # Evidence

    def log_marginal_likelihood(
        self, prior_precision: Tree = None, noise: ArrayLike | None = None
    ) -> Array:
        """Return the evidence, log p(y), of this prior and noise, or of others.

        log p(y|θ*) − ½ (log|P| − Σ log δ + δ‖θ*‖²): differentiable by both arguments, under
        ``jit`` and ``vmap``. θ* stays as it is, and so does H.

        Args:
            prior_precision: δ: a number, or one for each weight by name; of an ensemble these may
                be (members,).
            noise: σ.

        Returns:
            A number; of an ensemble (members,).

        Raises:
            ValueError: a number is not positive, or the names are not those of the weights.
        """
        if noise is not None and self.likelihood.name != "gaussian":
            raise ValueError(
                f"Laplace.log_marginal_likelihood: likelihood {self.likelihood.name!r} has no "
                f"noise="
            )
        changed = self._with(prior_precision, noise, "Laplace.log_marginal_likelihood")
        return _evidence(changed)

    def tuned(
        self,
        by: Literal["evidence", "validation"] = "evidence",
        per: Literal["all", "layer"] = "all",
        *,
        noise: bool = False,
        data: Tree = None,
        key: Key | None = None,
        samples: int = 100,
    ) -> Laplace:
        """Return the posterior with the prior, and the noise, that explain the data best.

        By the evidence they are found by Newton's method, which is sure to find them: the evidence
        is concave in log δ and log σ together. The weights stay those of the old prior and noise:
        train again with the new ones where they are far from them, or go on from the prior that
        ``implied_prior_precision`` shows.

        Args:
            by: ``"evidence"``, or ``"validation"``: the greatest mean log density of held-out
                targets, of 41 values from 1e-4 to 1e4.
            per: one δ for ``"all"`` weights, or for each ``"layer"``: each weight and each bias.
            noise: find σ of a Gaussian's targets, too, by the evidence.
            data: (x, y), held out, for ``"validation"``.
            key: that of the draws of ``"validation"``, for all likelihoods but the Gaussian.
            samples: how many draws.

        Returns:
            A new posterior; of an ensemble each member has its own prior and noise.

        Raises:
            ValueError: an argument is unknown or missing, ``noise`` is asked for where the
                likelihood has none, or the network meets all targets, so that the best σ is 0.
        """
        caller = "Laplace.tuned"
        if by not in ("evidence", "validation") or per not in ("all", "layer"):
            raise ValueError(
                f"{caller}: by must be 'evidence' or 'validation' and per 'all' or 'layer', got "
                f"{by!r} and {per!r}"
            )
        if noise and (by != "evidence" or self.likelihood.name != "gaussian"):
            raise ValueError(
                f"{caller}: noise=True is for likelihood='gaussian' and by='evidence', got "
                f"{self.likelihood.name!r} and {by!r}"
            )
        if by == "evidence":
            if data is not None:
                raise ValueError(f"{caller}: data= is for by='validation'; the evidence needs none")
            prior, sigma = _best_by_evidence(self, per, noise)
            if sigma is None or isinstance(sigma, Tracer):
                return self._with(prior, sigma, caller)
            if not bool(snp.all(snp.isfinite(sigma) & (sigma > 0))):
                raise ValueError(
                    f"{caller}: noise=True: the evidence grows for ever as σ falls, since the "
                    f"network meets its targets: leave out noise=True, or take held-out data"
                )
            return self._with(prior, sigma, caller)
        if data is None or per == "layer":
            raise ValueError(
                f"{caller}: by='validation' needs data=(x, y), held out, and has per='all'"
            )
        if key is None and self.likelihood.name != "gaussian":
            raise ValueError(
                f"{caller}: by='validation' draws predictions of {self.likelihood.name!r}, and "
                f"needs key="
            )
        x, y = _examples(data, caller)
        return self._with(_best_by_validation(self, x, y, key, samples), None, caller)

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write network and posterior to one safetensors file, whole or not at all.

        Args:
            path: the file, replaced if it exists.

        Raises:
            OSError: it cannot be written.
        """
        stretto.ensemble.laplace_files.write(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str], like: Tree) -> Laplace:
        """Read the posterior that ``save`` wrote.

        Args:
            path: the file.
            like: a network of the same architecture, as ``fit_laplace`` takes it: of an ensemble
                one of any number of members; or a ``Laplace``, which is needed where likelihood or
                weights were given as functions.

        Returns:
            The posterior, with the file's network.

        Raises:
            ValueError: the file is damaged, or does not match ``like``; the message names the path.
        """
        return stretto.ensemble.laplace_files.read(path, like)


# What the methods compute, compiled


@functools.partial(jit, static_argnums=2)
def _draws(laplace: Laplace, key: Key, n: int) -> dict[str, Array]:
    """Return the differences to θ* of n draws for each member."""

    def of_one(posterior: Posterior, key: Key) -> dict[str, Array]:
        draw = functools.partial(posterior.precision.draw, posterior.factor())
        return vmap(draw)(random.split(key, n))

    return laplace._each(of_one)(laplace._posterior, laplace._own_keys(key))


@jit
def _evidence(laplace: Laplace) -> Array:
    return laplace._each(lambda p: p.evidence(laplace._targets))(laplace._posterior)


@functools.partial(jit, static_argnums=(1, 2))
def _best_by_evidence(
    laplace: Laplace, per: str, noise: bool
) -> tuple[dict[str, Array], Array | None]:
    """Return the prior with the greatest evidence, and the noise if it is asked for."""

    def best(posterior: Posterior) -> tuple[dict[str, Array], Array | None]:
        names = list(posterior.prior_precision)
        priors = snp.log(snp.stack(list(posterior.prior_precision.values())))
        priors = priors if per == "layer" else snp.mean(priors, keepdims=True)
        start = snp.append(priors, snp.log(posterior.noise)) if noise else priors

        def of(logs: Array) -> tuple[dict[str, Array], Array | None]:
            each = snp.broadcast_to(snp.exp(logs[: len(priors)]), (len(names),))
            return {n: each[i] for i, n in enumerate(names)}, snp.exp(logs[-1]) if noise else None

        def loss(logs: Array) -> Array:
            prior, sigma = of(logs)
            changed = dataclasses.replace(
                posterior,
                prior_precision=prior,
                noise=posterior.noise if sigma is None else sigma,
            )
            return -changed.evidence(laplace._targets)

        return of(minimize(loss, start))

    return laplace._each(best)(laplace._posterior)


def _count(model: Tree) -> int:
    """Return how many networks a model is."""
    return len(model) if isinstance(model, Ensemble) else 1


@functools.partial(jit, static_argnums=(1, 5, 6, 7, 8, 9))
def _fit(
    model: Tree,
    ties: Ties,
    x: Tree,
    y: Tree,
    key: Key | None,
    likelihood: Likelihood,
    structure: str,
    weights: Choice,
    batch_size: int,
    rank: int,
) -> Posterior:
    settings = (key, likelihood, structure, weights, batch_size, rank, _count(model))
    return of_model(model, ties, lambda one: fit_posterior(one, x, y, *settings))


@functools.partial(jit, static_argnums=(2, 3))
def _predict(laplace: Laplace, x: Tree, joint: bool, noise: bool) -> Gaussian:
    def of(model: Tree, posterior: Posterior) -> Gaussian:
        out = predictive(model, posterior, x, laplace.weights, joint, _count(laplace.model))
        if not noise:
            return out
        if laplace.likelihood.name == "gaussian":
            return out.with_noise(snp.square(posterior.noise))
        # The variance of targets is e^f of the second output: log-normal, of mean e^{m + v/2}.
        mean, variance = out.mean[..., 1], out.variance[..., 1]
        return out.part(0).with_noise(snp.exp(mean + variance / 2))

    return of_model(laplace.model, laplace._ties, of, laplace._posterior)


@functools.partial(jit, static_argnums=(3, 4))
def _probabilities(laplace: Laplace, x: Tree, key: Key | None, link: str, samples: int) -> Array:
    name = laplace.likelihood.name
    squash = sigmoid if name == "bernoulli" else functools.partial(softmax, axis=1)

    def of(model: Tree, posterior: Posterior, key: Key | None = None) -> Array:
        settings = x, laplace.weights
        if key is not None and link == "sampled":
            draw = draws_of(model, posterior, *settings, samples, _count(laplace.model))
            return mean_over_draws(draw, squash, key, samples)
        out = predictive(model, posterior, *settings, False, _count(laplace.model))
        if link == "probit":
            return squash(probit(out.mean, out.variance))
        if out.mean.ndim > 2:
            raise ValueError(
                f"Laplace.probabilities: link='bridge' is for outputs (batch, classes), got "
                f"{out.mean.shape}"
            )
        return bridge(out.mean, out.covariance)

    states = [laplace._posterior, *([] if key is None else [laplace._own_keys(key)])]
    out = of_model(laplace.model, laplace._ties, of, *states)
    return snp.mean(out, 0) if isinstance(laplace.model, Ensemble) else out


@functools.partial(jit, static_argnums=4)
def _best_by_validation(laplace: Laplace, x: Tree, y: Tree, key: Key | None, samples: int) -> Array:
    """Return the value of a grid with the greatest mean log density of the targets."""
    grid = snp.logspace(-4, 4, 41, dtype=laplace._posterior.loss.dtype)
    nll = vmap(laplace.likelihood.nll)

    def of(model: Tree, posterior: Posterior, key: Key | None = None) -> Array:
        settings, members = (x, laplace.weights), _count(laplace.model)

        def density(value: Array) -> Array:
            names = posterior.prior_precision
            changed = dataclasses.replace(posterior, prior_precision=dict.fromkeys(names, value))
            if laplace.likelihood.name == "gaussian":
                out = predictive(model, changed, *settings, False, members)
                return snp.mean(out.with_noise(snp.square(posterior.noise)).log_density(y))
            assert key is not None  # ``tuned`` has seen to that
            draw = draws_of(model, changed, *settings, samples, members)
            return snp.mean(log_mean_over_draws(draw, lambda f: -nll(f, y), key, samples))

        return grid[snp.argmax(lax.map(density, grid))]

    states = [laplace._posterior, *([] if key is None else [laplace._own_keys(key)])]
    return of_model(laplace.model, laplace._ties, of, *states)
