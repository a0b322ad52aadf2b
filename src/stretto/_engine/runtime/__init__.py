"""Layer 6: arrays, devices, compiled programs. ``pjrt`` alone touches jaxlib."""
