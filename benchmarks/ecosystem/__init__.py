"""The test suites of libraries written for JAX, run on Stretto: ``make ecosystem``."""
