"""Thirty small CNNs of three architectures on Fashion-MNIST, from first weights to one file.

``make example-fashion`` runs it, or ``python -m examples.fashion`` from the root of the project;
``--help`` shows what can be changed. ``docs/fashion.md`` has the results, and what they say. The
stages are in ``data``, ``models``, ``training``, ``soups`` and ``scoring``, to be read in this
order.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import stretto as st
import stretto.numpy as snp
from examples.fashion import data, models, scoring, soups, training
from stretto import nn
from stretto.demo.options import DemoError

EXPLAINED = 256


def table(title: str, heads: list[str], rows: list[list[str]]) -> None:
    """Print a table as Markdown."""
    print(f"\n### {title}\n\n| {' | '.join(heads)} |\n| {' | '.join(['---'] * len(heads))} |")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print(flush=True)


def scores_table(title: str, rows: list[scoring.Row]) -> None:
    """Print scores with their spreads."""

    def cell(name: str, value: float, spread: float) -> str:
        if name in ("accuracy", "ECE"):
            return f"{100 * value:.2f} ± {100 * spread:.2f} %"
        return f"{value:.4f} ± {spread:.4f}"

    heads = ["prediction", *scoring.SCORES]
    table(title, heads, [[r.name, *(cell(n, *v) for n, v in r.values.items())] for r in rows])


def fitted(
    parts: data.Data, plan: training.Plan, architectures: tuple[str, ...], members: int, key: Any
) -> st.Ensemble:
    """The trained ensemble, and a table of its architectures."""
    ensemble = models.make(architectures, members, st.random.fold_in(key, 0))
    print(ensemble)
    result = training.train(
        ensemble, parts.train, parts.fit, plan, members, st.random.fold_in(key, 1)
    )
    history, rows = result.history, []
    for i, architecture in enumerate(architectures):
        own = slice(i * members, (i + 1) * members)
        numbers = sum(x[0].size for x in ensemble.groups[i].trainable()[0].values())
        last = [history[n][-1, own] for n in ("loss", "validation_loss", "validation_accuracy")]
        rows.append([architecture, f"{numbers:,}", *(f"{x.mean():.3f}" for x in last)])
    heads = ["architecture", "parameters", "training loss", "held-out loss", "held-out accuracy"]
    table("After training, means over members", heads, rows)
    return ensemble


def further(
    ensemble: st.Ensemble,
    parts: data.Data,
    plan: training.Plan,
    architectures: tuple[str, ...],
    members: int,
    key: Any,
) -> tuple[st.Ensemble, list[list[str]]]:
    """The averages of each member's snapshots, and what averages of weights are worth."""
    labels, images = parts.judge.labels, soups.batches(parts.train)
    go_on = training.Further(parts.train, plan, members, ensemble)
    noise = st.random.fold_in(key, 3)
    last, stale = go_on(ensemble, st.random.fold_in(key, 1))
    averaged = st.ensemble.update_batch_norm(stale, images, key=noise)
    rows = [
        scoring.of_members(
            name, nn.softmax(scoring.predict(e.eval(), parts.judge.images), -1), labels
        )
        for name, e in (
            ("the last snapshot", last),
            ("the average of the snapshots", averaged),
            ("the same with averaged BatchNorm statistics", stale),
        )
    ]
    scores_table("Each member's snapshots on the way, averaged", rows)

    accuracies = own_accuracies(scoring.predict(ensemble.eval(), parts.fit.images), parts.fit)
    best = [
        soups.best_members(group, own)
        for group, own in zip(
            ensemble.train().groups, np.split(accuracies, len(architectures)), strict=True
        )
    ]
    tuned, _ = go_on(soups.copies(best, members), st.random.fold_in(key, 4))
    rows = []
    for what, e in (("trained apart", ensemble), ("tuned copies of one", tuned)):
        rows += soup_rows(what, e, parts, architectures, noise)
    return averaged, rows


def own_accuracies(logits: np.ndarray, part: data.Part) -> np.ndarray:
    """(members,): the accuracy of each."""
    return np.asarray(st.ensemble.accuracy(logits, part.labels))


def soup_rows(
    what: str, ensemble: st.Ensemble, parts: data.Data, architectures: tuple[str, ...], key: Any
) -> list[list[str]]:
    """For each architecture the accuracy of its members, of their soups, and of their mean."""
    fit_logits = scoring.predict(ensemble.eval(), parts.fit.images)
    test_logits = scoring.predict(ensemble, parts.judge.images)
    images, rows = soups.batches(parts.train), []
    for architecture, group, to_choose, to_judge in zip(
        architectures,
        ensemble.groups,
        np.split(own_accuracies(fit_logits, parts.fit), len(architectures)),
        np.split(test_logits, len(architectures)),
        strict=True,
    ):
        uniform, greedy = soups.soups(group, to_choose, images, parts.fit, key)
        both = scoring.predict(st.Ensemble([uniform, greedy.params]), parts.judge.images)
        own, souped = own_accuracies(to_judge, parts.judge), own_accuracies(both, parts.judge)
        mean = nn.softmax(to_judge, -1).mean(0)
        rows.append(
            [
                f"{architecture}, {what}",
                f"{100 * own.mean():.2f} ± {100 * own.std(ddof=1):.2f} %",
                f"{100 * souped[0]:.2f} %",
                f"{100 * souped[1]:.2f} % (of {len(greedy.members)})",
                f"{100 * float(st.ensemble.accuracy(mean, parts.judge.labels)):.2f} %",
            ]
        )
    return rows


def saved(ensemble: st.Ensemble, path: Path, like: st.Ensemble, seed: int) -> st.Ensemble:
    """The ensemble as it comes back from the file; ``like`` has a member of each architecture."""
    ensemble.save(path, {"example": "examples/fashion", "seed": str(seed)})
    loaded = st.Ensemble.load(path, like)
    arrays = len(st.files.load_header(path).arrays)
    print(f"Saved to {path}: {path.stat().st_size / 1e6:.1f} MB, {arrays} arrays; loaded again.")
    return loaded


def judge(
    name: str, ensemble: st.Ensemble, parts: data.Data, architectures: tuple[str, ...]
) -> None:
    """Print all scores of an ensemble: of members, of each architecture, combined, of digits."""
    fit, labels = scoring.predict(ensemble, parts.fit.images), parts.judge.labels
    logits = scoring.predict(ensemble, parts.judge.images)
    scores_table(f"{name}: combined", scoring.combined(fit, parts.fit, logits, labels))
    rows = []
    for architecture, own in zip(architectures, np.split(logits, len(architectures))):
        probs = nn.softmax(own, -1)
        rows.append(scoring.of_members(f"a member, {architecture}", probs, labels))
        rows.append(scoring.of_one(f"mean of {len(own)}, {architecture}", probs.mean(0), labels))
    scores_table(f"{name}: by architecture", rows)
    scores = scoring.detection(logits, scoring.predict(ensemble, parts.unknown))
    rows = [
        [n, f"{value:.4f}" if np.isnan(spread) else f"{value:.4f} ± {spread:.4f}"]
        for n, value, spread in scores
    ]
    table(f"{name}: AUROC of digits ({len(parts.unknown):,}) among clothes", ["score", ""], rows)


def run(parts: data.Data, options: argparse.Namespace) -> st.Ensemble:
    """All stages; returns the ensemble of averages, as it came back from its file."""
    clock, began = time.perf_counter, time.perf_counter()
    architectures, key = tuple(options.architectures), st.random.PRNGKey(options.seed)
    plan = training.Plan(
        min(options.draws, len(parts.train.labels)),
        options.epochs,
        options.batch,
        snapshots=options.snapshots,
        between=options.between,
    )
    sizes = ", ".join(f"{len(p.labels):,} to {n}" for n, p in zip(parts._fields, parts[:3]))
    print(f"{plan}\nImages: {sizes}. Seed {options.seed}.\n")
    ensemble = fitted(parts, plan, architectures, options.members, key)
    print(f"Trained in {clock() - began:.0f} s.\n", flush=True)
    group = ensemble.eval().groups[0]
    print(f"How the {len(group)} members of {architectures[0]!r} run {EXPLAINED} images:\n")
    print(f"```text\n{group.explain(snp.asarray(parts.fit.images[:EXPLAINED]))}\n```", flush=True)
    judge("After training", ensemble, parts, architectures)
    ensemble.train()

    start = clock()
    averaged, rows = further(ensemble, parts, plan, architectures, options.members, key)
    heads = ["members", "a member", "uniform soup", "greedy soup", "their ensemble (mean)"]
    table("Soups across members: accuracy", heads, rows)
    print(f"Snapshots and soups took {clock() - start:.0f} s.\n")
    like = models.make(architectures, 1, key).eval()
    loaded = saved(averaged.eval(), options.file, like, options.seed)
    judge("Averages of snapshots, loaded from the file", loaded, parts, architectures)
    print(f"All took {clock() - began:.0f} s.")
    return loaded


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser("examples.fashion", description=(__doc__ or "").split("\n")[0])
    usual = training.Plan()
    add = parser.add_argument
    add("--data", type=Path, help="the four IDX files; default: where Debian installs them")
    add("--digits", type=Path, help="IDX files of MNIST; default: scikit-learn's digits")
    add("--on", choices=("test", "validation"), default="test", help="what to judge by")
    add("--members", type=int, default=10, help="of each architecture; default: 10")
    add("--architectures", nargs="+", choices=models.ARCHITECTURES, metavar="NAME",
        default=list(models.ARCHITECTURES), help="default: all three")  # fmt: skip
    add("--draws", type=int, default=usual.draws, help="size of a bootstrap; default: %(default)s")
    add("--epochs", type=int, default=usual.epochs, help="default: %(default)s")
    add("--batch", type=int, default=usual.batch, help="default: %(default)s")
    add("--snapshots", type=int, default=usual.snapshots, help="default: %(default)s")
    add("--between", type=int, default=usual.between, help="steps; default: %(default)s")
    add("--seed", type=int, default=0, help="default: 0")
    add("--file", type=Path, default=Path("fashion.safetensors"), help="default: %(default)s")
    options = parser.parse_args(arguments)
    if options.members < 2:
        parser.error("--members must be at least 2, to have a spread")
    return options


def main() -> None:
    """Run the example with the options of the command line."""
    options = options_of()
    try:
        parts = data.load(options.data, options.digits, options.on)
    except DemoError as error:
        raise SystemExit(
            f"{error}\nInstall Fashion-MNIST (Debian: dataset-fashion-mnist), or give --data DIR."
        ) from None
    run(parts, options)


if __name__ == "__main__":
    main()
