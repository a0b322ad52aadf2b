"""Real tasks of libraries written for JAX, on Stretto and on JAX: values, first results, steps."""
