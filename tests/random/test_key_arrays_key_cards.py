"""What is shown of typed keys."""

import stretto as st
from stretto import random
from tests.pages import printed, text_in


def test_few_keys_are_whole():
    keys = random.split(random.key(0), 3)
    assert repr(keys) == f"Array((3,), dtype=key<fry>) overlaying:\n{random.key_data(keys)}"
    text = text_in(keys)
    assert "key<fry>[3]" in text and "3 keys" in text and "threefry2x32" in text
    assert str(random.key_data(keys)) in text and "key<fry>[3]" in printed(keys)


def test_one_key():
    assert "1 key" in text_in(random.key(7)) and "[0 7]" in repr(random.key(7))


def test_many_keys_stay_short():
    keys = random.split(random.key(0), (40, 50))
    assert repr(keys).count("\n") < 40 and "... 1,980 more keys ..." in repr(keys)
    assert "... 1,980 more keys ..." in text_in(keys)


def test_other_implementations_and_traced_keys():
    assert "key<rbg>" in text_in(random.key(0, impl="rbg"))
    seen = []

    @st.jit
    def f(keys):
        seen.append((repr(keys), text_in(keys)))
        return keys

    f(random.split(random.key(0), 3))
    assert "<traced uint32[3,2]>" in seen[0][0] and "<traced uint32[3,2]>" in seen[0][1]


def test_keys_that_are_gone():
    keys = random.split(random.key(0), 3)
    keys._words.delete()
    assert "deleted" in repr(keys) and "deleted" in text_in(keys)
