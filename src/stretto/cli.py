"""The command ``stretto``, also ``python -m stretto``: parses arguments and runs a subcommand.

Errors in the arguments or the data are reported in one line on standard error, with exit status 2.
What a subcommand needs is imported only when it is chosen, so that ``stretto --help`` stays quick.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NoReturn

import stretto
from stretto._engine import xla
from stretto._engine.core.config import config
from stretto.demo import options as demo_options
from stretto.demo.options import DemoError

_CACHE = """
Shows where compiled programs are kept on disk, for other processes, and how much space they take.
STRETTO_CACHE_DIR names another place, STRETTO_DISK_CACHE_SIZE the most bytes that they may take,
and STRETTO_DISK_CACHE=0 switches the cache off.
"""


_LAUNCH = """
Runs a script in n processes, whose calls of stretto.distributed.initialize() then find each other.
Each line that they write begins with the number of the process. If one fails, the others are ended,
and its exit status is that of the command.
"""

_RUN = """
Runs a model: an artifact, which stretto.export.program(...).save wrote; StableHLO, of
stretto.export.stablehlo or jax.export; or an ONNX model, for which onnxruntime must be installed.
Inputs are .npy files, in order or by name (--input x=x.npy), or a
.npz file that has them by name. Without --output the results are printed.
"""


_TUNE = """
Measures what products, copies, new memory and the steps of loops take on this machine, in some
seconds, and keeps it in the user's cache directory, by processor. STRETTO_TUNED=1, or
stretto.config.tuned = True, makes estimates go by it, and not by the table that comes with the
package; st.Ensemble.explain says which they go by. Results differ by rounding at most. Nothing else
should run meanwhile.
"""


_EXPORT = """
Writes an artifact, which stretto.export.program(...).save wrote, as an ONNX model. A file of
parameters, as stretto.save and Ensemble.save write it, has no program: load it into the model, in
Python, and export that.
"""


_MERGE = """
Merges models, file to file, in little memory: by a recipe (TOML, JSON, or mergekit's YAML), or by a
method and models, all with the same settings but for lists. Nothing is at OUT until all of it is; a
run that was stopped goes on where it was. Or writes what a model was tuned by as an adapter.
docs/merging.md has the methods and the recipes.
"""
MERGING = (
    "linear, task_arithmetic, ties, dare_linear, dare_ties, breadcrumbs, breadcrumbs_ties, "
    "della_linear, della, slerp, nuslerp, multislerp, karcher, model_stock, fisher, regmean, "
    "tsv, iso, nearswap, ram, ramplus_tl, sce, arcee_fusion, passthrough"
)
"""The names of ``merge.METHODS``, which is not imported to show them."""


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {_one_line(message)} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (by default the process's own).

    Returns:
        The exit status: 0; 2 for wrong arguments or data; 130 when interrupted.

    >>> main(["--version"])
    stretto ...
    0
    """
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as stop:  # argparse: after help, the version, or an error
        return stop.code if isinstance(stop.code, int) else 0
    try:
        return arguments.run(arguments)
    except DemoError as error:
        print(f"stretto {arguments.command}: {_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"stretto {arguments.command}: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="stretto",
        description="Arrays, jit, grad, vmap, and ensembles of models run as one program.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"stretto {stretto.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    demo = commands.add_parser(
        "demo",
        help="train an ensemble of classifiers as one program, score it and measure it",
        description=demo_options.DESCRIPTION,
        allow_abbrev=False,
    )
    demo_options.add_arguments(demo)
    demo.set_defaults(run=_of("stretto.demo.comparison"))
    cache = commands.add_parser(
        "cache",
        help="show the compiled programs that are kept on disk, or clear them",
        description=_CACHE,
        allow_abbrev=False,
    )
    cache.add_argument("action", nargs="?", choices=["clear"], help="clear: remove all of them")
    cache.set_defaults(run=_cache)
    launch = commands.add_parser(
        "launch",
        help="run a script in several processes of this machine that can compute as one",
        description=_LAUNCH,
        allow_abbrev=False,
    )
    launch.add_argument("-n", type=_positive, required=True, help="how many processes")
    launch.add_argument("--devices", type=_positive, help="how many devices each of them has")
    launch.add_argument("script", help="the script, a file of Python")
    launch.add_argument("arguments", nargs=argparse.REMAINDER, help="the arguments of the script")
    launch.set_defaults(run=_of("stretto.launch_command"))
    run = commands.add_parser(
        "run",
        help="run a model that was exported, on arrays in files",
        description=_RUN,
        allow_abbrev=False,
    )
    run.add_argument("model", help="an artifact, a file of StableHLO, or an ONNX model (.onnx)")
    run.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="a .npy file, or a .npz file with several inputs; may be repeated",
    )
    run.add_argument(
        "--output", metavar="FILE", help="a .npy file for one output, a .npz file for several"
    )
    run.set_defaults(run=_of("stretto.export.commands"))
    export = commands.add_parser(
        "export",
        help="write an artifact as an ONNX model",
        description=_EXPORT,
        allow_abbrev=False,
    )
    export.add_argument("artifact", metavar="CHECKPOINT", help="an artifact")
    export.add_argument("out", metavar="OUT", help="the file to write: a name that ends in .onnx")
    export.add_argument("--opset", type=_positive, default=26, help="the version of the operators")
    export.set_defaults(run=_of("stretto.export.commands", "write"))
    _add_merge(commands)
    tune = commands.add_parser(
        "tune",
        help="measure this machine, for the estimates by which forms of ensembles are chosen",
        description=_TUNE,
        allow_abbrev=False,
    )
    tune.set_defaults(run=_of("stretto.tune_command"))
    info = commands.add_parser(
        "info",
        help="print versions, platform, devices and settings, for reports of faults",
        description="Prints what st.debug.print_environment_info() prints.",
        allow_abbrev=False,
    )
    info.set_defaults(run=_info)
    return parser


def _add_merge(commands: argparse._SubParsersAction[_Parser]) -> None:
    merge = commands.add_parser(
        "merge",
        help="merge models, file to file",
        description=_MERGE,
        usage="stretto merge [options] RECIPE OUT\n"
        "       stretto merge [options] --method METHOD MODEL ... --out OUT\n"
        "       stretto merge --extract-lora RANK --base BASE MODEL --out ADAPTER",
        allow_abbrev=False,
    )
    merge.add_argument("paths", nargs="+", metavar="PATH", help="RECIPE OUT, or models")
    merge.add_argument("--method", help=f"how to merge the models that are named: {MERGING}")
    merge.add_argument("--base", help="the model that they were tuned from")
    merge.add_argument("--out", help="where the result goes: a file, or a folder as models have")
    merge.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the method, in JSON; or 0.3,0.7 with one for each model",
    )
    merge.add_argument(
        "--extract-lora",
        type=_positive,
        metavar="RANK",
        help="write what MODEL has beyond BASE as a LoRA adapter of PEFT's, instead of merging",
    )
    merge.add_argument("--out-dtype", help="the dtype of the result: float32, bfloat16, ...")
    merge.add_argument("--dry-run", action="store_true", help="say what would be done")
    merge.add_argument("--memory", default="256MB", help="about how much memory to take (256MB)")
    merge.add_argument("--shard-size", help="the most bytes of a file, such as 5GB")
    merge.add_argument("--seed", type=int, help="for methods that draw")
    merge.add_argument("--verify", action="store_true", help="read the result again, too")
    merge.add_argument("--restart", action="store_true", help="drop what a run before has left")
    merge.add_argument("--keep-nonfinite", action="store_true", help="let NaN and infinity be")
    merge.add_argument("--json", action="store_true", help="print JSON")
    merge.set_defaults(run=_of("stretto.merge.commands"))


def _positive(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a number, 1 or more; got {text}")
    return value


def _one_line(message: object) -> str:
    return " ".join(str(message).split())


def _of(module: str, name: str = "run") -> Callable[[argparse.Namespace], int]:
    """Return the subcommand that a module has under this name, imported when it is run."""

    def run(options: argparse.Namespace) -> int:
        return getattr(import_module(module), name)(options)

    return run


def _info(options: argparse.Namespace) -> int:
    """Print what ``st.debug.print_environment_info()`` prints."""
    xla.environment.print_environment_info()
    return 0


def _cache(options: argparse.Namespace) -> int:
    """Show the compiled programs that are kept on disk, or clear them; 2 for unsafe files."""
    folder = xla.disk.folder()
    if folder is None:
        print("Compiled programs are not kept: there is no home directory, nor STRETTO_CACHE_DIR.")
        return 0
    try:
        programs = xla.store.clear(folder) if options.action else xla.store.list_kept(folder)
    except OSError as error:
        print(f"stretto cache: {error}", file=sys.stderr)
        return 2
    size = f"{sum(file.size for file in programs):,} bytes"
    if options.action:
        print(f"Removed {len(programs)} compiled programs, {size}, from {folder}")
        return 0
    print(f"directory  {folder}")
    print(f"programs   {len(programs)}")
    print(f"size       {size} of at most {config.disk_cache_size:,}")
    if programs:
        days = sorted([time.strftime("%Y-%m-%d %H:%M", time.localtime(f.used)) for f in programs])
        print(f"last used  {days[0]} (the oldest) to {days[-1]}")
    if not config.disk_cache:
        print("off        by STRETTO_DISK_CACHE")
    return 0
