"""What of JAX cannot be had here: modules that can be imported, and say why once they are used."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["MODULES", "RefusedName"]

_KERNELS = (
    "kernels written for one kind of device are not part of Stretto: write the function in "
    "jax.numpy"
)
_SAVING = "arrays are saved with stretto.save, or by a library of the user's"
_TENSORFLOW = "there is no way to TensorFlow: export with jax.jit(f).lower(...)"

_EXPORT = "programs are not written to files: jax.jit(f).lower(...).as_text() has their text"

MODULES = {
    "experimental.array_serialization": _SAVING,
    "experimental.array_serialization.serialization": _SAVING,
    "experimental.array_serialization.tensorstore_impl": _SAVING,
    "experimental.jax2tf": _TENSORFLOW,
    "export": _EXPORT,
    "experimental.pallas": _KERNELS,
    "experimental.pallas.ops": _KERNELS,
    "experimental.pallas.ops.gpu": _KERNELS,
    "experimental.pallas.ops.tpu": _KERNELS,
    "experimental.pallas.gpu": _KERNELS,
    "experimental.pallas.mosaic_gpu": _KERNELS,
    "experimental.pallas.tpu": _KERNELS,
    "experimental.pallas.triton": _KERNELS,
}
"""By the path below ``jax``: why it is refused, and what to do instead."""


class RefusedName:
    """Stands for something of JAX's that Stretto does not have; says so when it is called.

    >>> RefusedName("jax.experimental.pallas", "write it in jax.numpy").pallas_call(1)
    Traceback (most recent call last):
    NotImplementedError: jax.experimental.pallas.pallas_call is not in Stretto: write it in jax...
    """

    def __init__(self, name: str, why: str) -> None:
        self.__name__ = name
        self._why = why

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return RefusedName(f"{self.__name__}.{name}", self._why)

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(f"{self.__name__} is not in Stretto: {self._why}")

    def __repr__(self) -> str:
        return f"<{self.__name__}, which is not in Stretto>"
