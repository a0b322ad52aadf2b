"""Find what Python holds of a module beside parameters and buffers, and what of it changes."""
