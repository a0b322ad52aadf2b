"""Posterior approximations beside laplace-torch, curvlinops and chains in JAX."""
