"""Settings of the whole test run, made before the package is imported.

Layer none: read by pytest. Next, read ``CONTRIBUTING.md``, "Tests".
"""

import os

# "Compiled", in a test, means by XLA: the tests of interpretation, and the property tests, switch
# it on. A value from outside stays.
os.environ.setdefault("STRETTO_INTERPRET_SMALL", "0")
