"""Where XLA's plugin for GPUs is found."""

import importlib
import sys

import pytest

from stretto._engine.xla import plugins


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield tmp_path
    importlib.invalidate_caches()


def install(site, *files):
    for file in files:
        path = site / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    importlib.invalidate_caches()


def test_the_newest_that_is_installed(site):
    install(site, "jax_plugins/xla_cuda12/xla_cuda_plugin.so")
    assert plugins.find().routines == "jax_cuda12_plugin"
    install(site, "jax_plugins/xla_cuda13/xla_cuda_plugin.so")
    install(site, "nvidia/cu13/nvvm/libdevice/libdevice.10.bc")
    found = plugins.find()
    assert found.library == str(site / "jax_plugins/xla_cuda13/xla_cuda_plugin.so")
    assert found.routines == "jax_cuda13_plugin"
    assert found.toolkit == str(site / "nvidia/cu13")


def test_nothing_of_the_package_is_run(site):
    install(site, "jax_plugins/xla_cuda13/xla_cuda_plugin.so")
    (site / "jax_plugins/xla_cuda13/__init__.py").write_text("raise AssertionError")
    assert plugins.find() is not None
    assert "jax_plugins.xla_cuda13" not in sys.modules


def test_none():
    assert plugins.find() is None
