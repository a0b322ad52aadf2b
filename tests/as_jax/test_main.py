"""``python -m stretto.as_jax``."""

from tests.compat.jax.running import fails, prints


def test_scripts_and_modules(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys, jax\nprint(jax.__version__, sys.argv[1:], __name__)\n")
    expected = ["0.10.2 ['a', '-b'] __main__"]
    assert prints(None, "-m", "stretto.as_jax", str(script), "a", "-b") == expected
    path = {"PYTHONPATH": f"{tmp_path}:{__import__('os').environ.get('PYTHONPATH', '')}"}
    assert prints(None, "-m", "stretto.as_jax", "-m", "script", "a", "-b", **path) == expected


def test_nothing_to_run():
    assert "as Python would" not in fails(None, "-m", "stretto.as_jax")
