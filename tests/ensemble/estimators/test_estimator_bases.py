"""scikit-learn is loaded by who makes an estimator, and its absence is an error that says so."""

import subprocess
import sys


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_else_loads_scikit_learn():
    out = run(
        "import sys, stretto as st\n"
        "st.Ensemble, st.ensemble.mean, st.ensemble.fit_conformal_intervals, st.ensemble.sweep\n"
        "print('sklearn' in sys.modules, 'EnsembleRegressor' in dir(st.ensemble))"
    )
    assert out.split() == ["False", "True"]


def test_without_it_the_names_exist_and_making_one_names_the_extra():
    out = run(
        "import sys\n"
        "sys.modules['sklearn'] = None\n"
        "import stretto as st\n"
        "for make in (st.ensemble.EnsembleClassifier, st.ensemble.EnsembleRegressor):\n"
        "    try:\n"
        "        make(3, hidden=(8,))\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    for line, name in zip(out.splitlines(), ("EnsembleClassifier", "EnsembleRegressor")):
        assert line == (
            f"{name} is an estimator of scikit-learn, which is not installed: "
            f"pip install 'stretto[sklearn]'"
        )
    assert len(out.splitlines()) == 2
