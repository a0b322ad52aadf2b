"""Start the server, compare its answers with those of Python, and count requests a second.

``python check.py FOLDER`` runs in the service's environment, which has no Stretto. FOLDER is what
``export_model.py`` wrote.
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tritonclient.grpc import InferInput
from tritonclient.grpc.aio import InferenceServerClient
from tritonclient.utils import InferenceServerException

MODEL = "digits"
SECONDS = 2.0
CLIENTS = 32
# Products are summed in other orders; the outputs are at most 1, but the disagreement's 2.3.
TOLERANCE = 1e-5


def free_port() -> int:
    """Return a port that nothing listens to."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """``mlserver start FOLDER`` on ports of its own, as long as the block lasts."""

    def __init__(self, folder: Path) -> None:
        self.grpc = f"127.0.0.1:{free_port()}"
        ports = {
            "MLSERVER_HOST": "127.0.0.1",
            "MLSERVER_GRPC_PORT": self.grpc.partition(":")[2],
            "MLSERVER_HTTP_PORT": str(free_port()),
            "MLSERVER_METRICS_PORT": str(free_port()),
        }
        self._log = (folder / "server.log").open("w", encoding="utf-8")
        command = [str(Path(sys.executable).with_name("mlserver")), "start", str(folder)]
        self._process = subprocess.Popen(
            command, env={**os.environ, **ports}, stdout=self._log, stderr=self._log
        )

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)
        self._log.close()

    async def ready(self, client: InferenceServerClient) -> None:
        """Wait until the model answers."""
        for _ in range(600):
            if self._process.poll() is not None:
                raise SystemExit(f"mlserver ended: see {self._log.name}")
            try:
                if await client.is_model_ready(MODEL):
                    return
            except InferenceServerException:
                pass
            await asyncio.sleep(0.2)
        raise SystemExit(f"mlserver is not ready: see {self._log.name}")


def asked(rows: np.ndarray) -> list[InferInput]:
    """Return a request's inputs."""
    x = InferInput("X", list(rows.shape), "FP32")
    x.set_data_from_numpy(rows)
    return [x]


async def compare(client: InferenceServerClient, rows: np.ndarray, expected: dict) -> float:
    """Ask for all rows, one request each and all at once; return the largest difference."""
    replies = await asyncio.gather(*[client.infer(MODEL, asked(row[None])) for row in rows])
    worst = 0.0
    for name, values in expected.items():
        got = np.concatenate([reply.as_numpy(name) for reply in replies])
        if got.shape != values.shape:
            raise SystemExit(f"{name}: expected shape {values.shape}, got {got.shape}")
        worst = max(worst, float(np.abs(got - values).max()))
    return worst


async def rate(client: InferenceServerClient, rows: np.ndarray) -> tuple[float, float]:
    """Return requests a second by CLIENTS that ask one row after another, and the median wait."""
    waits: list[float] = []
    end = time.perf_counter() + SECONDS

    async def ask(first: int) -> None:
        i = first
        while (start := time.perf_counter()) < end:
            await client.infer(MODEL, asked(rows[i % len(rows)][None]))
            waits.append(time.perf_counter() - start)
            i += CLIENTS

    await asyncio.gather(*[ask(i) for i in range(CLIENTS)])
    return len(waits) / SECONDS, statistics.median(waits)


async def served(folders: dict[str, Path], rows: np.ndarray, expected: dict, rounds: int) -> None:
    """Serve each folder, compare, and print the median and the quartiles of rounds in turn."""
    async with contextlib.AsyncExitStack() as stack:
        clients = {}
        for title, folder in folders.items():
            server = stack.enter_context(Server(folder))
            client = await stack.enter_async_context(InferenceServerClient(server.grpc))
            await server.ready(client)
            clients[title] = client
            worst = await compare(client, rows, expected)
            print(f"{title}: {len(rows)} answers differ by at most {worst:.1e}", flush=True)
            if not worst < TOLERANCE:
                raise SystemExit("the server's answers are not those of Python")
        measured: dict[str, list[tuple[float, float]]] = {title: [] for title in clients}
        for _ in range(rounds):
            for title, client in clients.items():
                measured[title].append(await rate(client, rows))
        for title, pairs in measured.items():
            if pairs:
                print(f"{title}: {summary(*zip(*pairs, strict=True))}")


def summary(rates: Sequence[float], waits: Sequence[float]) -> str:
    """Return medians, and the quartiles of the rates."""
    low, middle, high = np.percentile(rates, [25, 50, 75])
    return (
        f"{middle:.0f} requests a second (quartiles {low:.0f} and {high:.0f} of {len(rates)} "
        f"rounds), median wait {1e3 * statistics.median(waits):.1f} ms, {CLIENTS} clients"
    )


def main() -> None:
    """Serve with batches and without."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="what export_model.py wrote")
    parser.add_argument("--rounds", type=int, default=9, help="0 compares alone")
    options = parser.parse_args()
    cases = json.loads((options.folder / "cases.json").read_text(encoding="utf-8"))
    rows = np.array(cases["X"], np.float32)
    expected = {name: np.array(values) for name, values in cases["expected"].items()}
    with tempfile.TemporaryDirectory() as other:
        alone = Path(shutil.copytree(options.folder, Path(other) / "alone"))
        settings = json.loads((alone / "model-settings.json").read_text(encoding="utf-8"))
        settings["max_batch_size"] = 0
        (alone / "model-settings.json").write_text(json.dumps(settings), encoding="utf-8")
        folders = {"in batches": options.folder, "one by one": alone}
        asyncio.run(served(folders, rows, expected, options.rounds))


if __name__ == "__main__":
    main()
