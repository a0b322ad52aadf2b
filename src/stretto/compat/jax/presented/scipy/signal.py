"""``jax.scipy.signal``: ``stretto.scipy.signal``, whose convolutions are in floats."""

from stretto.compat.jax.convolving import in_floats
from stretto.compat.jax.naming import names_of
from stretto.scipy import signal

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]

convolve, convolve2d = in_floats(signal.convolve), in_floats(signal.convolve2d)
correlate, correlate2d = in_floats(signal.correlate), in_floats(signal.correlate2d)
fftconvolve = in_floats(signal.fftconvolve)

__getattr__, __dir__ = names_of("stretto.scipy.signal")
