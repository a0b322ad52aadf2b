"""Packages that only the demo needs."""

import pytest

from stretto.demo import options
from tests.test_cli import outcome


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("matplotlib", "drawing the picture needs the package matplotlib"),
        ("sklearn", "reading the digits needs the package scikit-learn"),
    ],
)
def test_missing_packages(capsys, monkeypatch, tmp_path, missing, message):
    real = options.import_module

    def import_module(name):
        if name.startswith(missing):
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
        return real(name)

    monkeypatch.setattr(options, "import_module", import_module)
    status, line = outcome(capsys, "demo", "--digits", "--picture", str(tmp_path / "picture.png"))
    assert (status, line) == (2, f"stretto demo: {message}: pip install 'stretto[demo]'\n")
