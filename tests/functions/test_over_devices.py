"""A sample of the public functions on arrays that are split over devices.

Every twentieth, in the order of their names, with all families among them; STRETTO_ALL_FUNCTIONS=1
takes all.
"""

import os

import pytest

from tests.functions import checks, table
from tests.functions import (
    test_functions as every_entry,  # noqa: F401 (fills the table)
)
from tests.meshes import mesh

pytestmark = pytest.mark.devices

NAMES = [name for name, e in sorted(table.ENTRIES.items()) if not e.uncompiled]
SAMPLE = NAMES if os.environ.get("STRETTO_ALL_FUNCTIONS") else NAMES[::20]


@pytest.mark.parametrize("name", SAMPLE)
def test_over_devices(name):
    checks.check_over_devices(table.ENTRIES[name], mesh(x=2))
