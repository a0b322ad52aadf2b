"""The list of broken lines that change nothing: each is a line of the engine as it is."""

from tests import mutants
from tests.mutations import ENGINE, mutants_of


def test_every_line_is_there_and_can_be_broken_so():
    texts = [p.read_text("utf-8") for p in (mutants.ROOT / ENGINE).rglob("*.py")]
    for (before, after), reason in mutants.equivalent().items():
        having = [text for text in texts if before in text]
        assert having, f"no line of the engine is {before}"
        found = {(m.before.strip(), m.after.strip()) for m in mutants_of("", having[0])}
        assert (before, after) in found
        assert reason.strip()
