"""Where XLA's plugin for GPUs is found."""

import importlib
import sys
from types import SimpleNamespace

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


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A plugin with some of NVIDIA's libraries, and what is done with them."""
    for package, name in [("cublas", "libcublas.so.12"), ("cudart", "libcudart.so.13")]:
        folder = tmp_path / package / "lib"
        folder.mkdir(parents=True)
        (folder / name).touch()
    done = []
    monkeypatch.setattr(plugins, "_folders", lambda package: [str(tmp_path)])
    monkeypatch.setattr(plugins.ctypes, "CDLL", lambda path: done.append(path.split("/")[-1]))
    client = SimpleNamespace(
        load_pjrt_plugin_dynamically=lambda *how: done.append(how) or "handle",
        initialize_pjrt_plugin=done.append,
    )
    return SimpleNamespace(done=done, client=client)


def test_libraries_are_loaded_in_front_of_the_plugin(made):
    """Each after those that it needs; those that are missing may be the system's."""
    plugin = plugins.Plugin("the library", "routines", "")
    assert plugins.load.__wrapped__(plugin, made.client) == "handle"
    name = plugins.NAME
    assert made.done == ["libcudart.so.13", "libcublas.so.12", (name, "the library"), name]


def test_functions_are_registered_for_the_plugin(monkeypatch):
    done = []
    extension = SimpleNamespace(
        register_custom_call_target=lambda *how: done.append(how),
        register_custom_type=lambda *how: done.append(how),
        ffi_types=lambda: {"a type": "its id"},
        ffi_handlers=lambda: {"xla_ffi_python_gpu_callback": "calls Python"},
    )
    solver = SimpleNamespace(registrations=lambda: {"cusolver_getrf": "solves"})
    modules = {"routines.cuda_plugin_extension": extension, "routines._solver": solver}
    monkeypatch.setattr(plugins.importlib, "import_module", modules.__getitem__)
    plugin = plugins.Plugin("the library", "routines", "")
    plugins.register("cusolver_", plugin, "handle")
    assert done == [("handle", "cusolver_getrf", "solves", "CUDA", 1, 0)]
    done.clear()
    plugins.register("xla_ffi_python_gpu", plugin, "handle")
    assert done == [
        ("handle", "a type", "its id"),
        ("handle", "xla_ffi_python_gpu_callback", "calls Python", "CUDA", 1, 0),
    ]
