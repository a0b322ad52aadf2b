"""The number of devices, as a flag of XLA's says."""

from tests.compat.jax.running import prints

FLAG = "--xla_force_host_platform_device_count"


def test_the_flag_is_read_when_devices_are_first_needed():
    assert prints(
        f"""
        import os
        from jax._src import xla_bridge
        os.environ["XLA_FLAGS"] = "{FLAG}=3"
        print(dict(xla_bridge._backends), "cpu" in xla_bridge._backends)
        print(len(jax.devices()), jax.pmap(lambda x: 2 * x)(jnp.arange(3)).tolist())
        os.environ["XLA_FLAGS"] = "{FLAG}=5"
        print(jax.device_count(), xla_bridge._backends.get("cpu").platform)
        """
    ) == ["{} False", "3 [0, 2, 4]", "3 cpu"]


def test_the_setting_comes_first():
    code = "print(jax.local_device_count())"
    assert prints(code, XLA_FLAGS=f"{FLAG}=3", JAX_NUM_CPU_DEVICES="2") == ["2"]
    compiled = "jax.jit(lambda x: x @ x)(jnp.ones((300, 300)))\n"
    assert prints(compiled + code, XLA_FLAGS=f"{FLAG}=3") == ["3"]
