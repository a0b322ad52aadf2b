"""What the public checks run are targets of the Makefile, on Pythons that the package names."""

import pathlib
import re
import shlex

import pytest

from release.pythons import supported

yaml = pytest.importorskip("yaml")  # pre-commit brings it

ROOT = pathlib.Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


JOBS = [
    pytest.param(job, id=f"{file.stem}-{name}")
    for file in WORKFLOWS
    for name, job in yaml.safe_load(file.read_text("utf-8"))["jobs"].items()
]


@pytest.mark.parametrize("job", JOBS)
def test_jobs_are_targets(job):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    commands = [shlex.split(step["run"]) for step in job["steps"] if "run" in step]
    assert commands
    for make, target, *settings in commands:
        assert make == "make" and target in targets
        assert all(re.match("[A-Z]+=", setting) for setting in settings)


@pytest.mark.parametrize("job", JOBS)
def test_pythons_are_supported(job):
    named = set()
    for step in job["steps"]:
        named |= {*re.findall(r"3\.\d+", str(step.get("with", {}).get("python-version", "")))}
    matrix = job.get("strategy", {}).get("matrix", {})
    rows = matrix.get("include", [])
    named |= {*matrix.get("python", []), *[row["python"] for row in rows if "python" in row]}
    assert named <= {*supported()}


def test_all_that_are_supported_are_tested():
    (file,) = WORKFLOWS
    matrix = yaml.safe_load(file.read_text("utf-8"))["jobs"]["tests"]["strategy"]["matrix"]
    assert {*supported()} == {*matrix["python"], *[row["python"] for row in matrix["include"]]}
