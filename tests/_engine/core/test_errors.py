"""The errors, and what else each may be caught as."""

import pytest

import stretto as st
from stretto._engine.core import errors


@pytest.mark.parametrize(
    "error, kin",
    [
        (errors.ConfigError, (ValueError, AttributeError)),
        (errors.TracedValueError, (TypeError,)),
        (errors.ContractionError, (TypeError, ValueError)),
        (errors.BooleanIndexError, (errors.TracedValueError, IndexError)),
        (errors.EscapedTracerError, (TypeError,)),
        (errors.DonatedArrayError, (RuntimeError,)),
        (errors.ForkedProcessError, (RuntimeError,)),
        (errors.UnboundAxisError, (NameError,)),
        (errors.MissingRuleError, (NotImplementedError,)),
        (errors.ForwardModeError, (errors.MissingRuleError, TypeError)),
        (errors.PerturbationError, (TypeError,)),
        (errors.ProgramError, ()),
    ],
)
def test_kin(error, kin):
    for base in (errors.StrettoError, *kin):
        assert issubclass(error, base)


def test_a_warning_is_no_error():
    assert issubclass(errors.RecompilationWarning, UserWarning)
    assert not issubclass(errors.RecompilationWarning, errors.StrettoError)


def test_all_are_public():
    defined = {
        n for n, e in vars(errors).items() if isinstance(e, type) and issubclass(e, Exception)
    }
    assert len(defined) > 10 and defined <= {*st.errors.__all__}
