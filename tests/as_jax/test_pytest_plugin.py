"""The plugin for pytest."""

from tests.compat.jax.running import prints


def test_tests_get_stretto_as_jax(tmp_path):
    (tmp_path / "test_one.py").write_text(
        "import jax.numpy\ndef test_one():\n    assert jax.numpy.ones(2).sum() == 2\n"
    )
    plugins = ("-p", "stretto.as_jax.pytest_plugin", "-p", "no:cacheprovider", "-q")
    options = ("-c", "/dev/null", "--rootdir", str(tmp_path))
    lines = prints(None, "-m", "pytest", *plugins, *options, str(tmp_path))
    assert "1 passed" in lines[-1]
