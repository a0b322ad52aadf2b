"""Settings of the whole test run, made before the package is imported."""

import os
from importlib import metadata

import hypothesis

# What is in the environment stays as it is: `XLA_FLAGS= make test` compiles all as users do.

# "Compiled", in a test, means by XLA: the tests of interpretation, and the property tests, switch
# it on.
os.environ.setdefault("STRETTO_INTERPRET_SMALL", "0")

# To compile takes most of the time of the tests, and of that to make good machine code five sixths.
# The programs are the same, and so are the passes of XLA that change them. For each flag: its value
# here, and for users.
FLAGS = {"xla_backend_optimization_level": (0, 3), "xla_cpu_parallel_codegen_split_count": (1, 32)}
if metadata.version("jaxlib").startswith("0.10."):  # XLA ends the process at a flag unknown to it
    FLAGS["xla_cpu_use_fusion_emitters"] = (False, True)
QUICKLY = " ".join(f"--{name}={str(here).lower()}" for name, (here, _) in FLAGS.items())

if os.environ.setdefault("XLA_FLAGS", QUICKLY) == QUICKLY:
    from stretto import laws

    # Laws, and tests whose numbers depend on it, compile as users do.
    laws.FULLY.update({name: users for name, (_, users) in FLAGS.items()})


# A loaded machine is no fault of an example's.
hypothesis.settings.register_profile("any speed", deadline=None)
hypothesis.settings.load_profile("any speed")


def pytest_collection_modifyitems(config, items):
    """Leave out what needs several devices: ``test_devices`` has a process with them run it."""
    if "STRETTO_NUM_CPU_DEVICES" not in os.environ:
        several = [item for item in items if item.get_closest_marker("devices")]
        items[:] = [item for item in items if item not in set(several)]
        config.hook.pytest_deselected(items=several)
