"""Each layer and costly function of `stretto.nn`, at three sizes, beside PyTorch and JAX.

Read `row` for what a row is, the tables in `rows_*`, `catalogue`, then a worker: `torch_worker`
and `stretto_worker` make layers by their names, `jax_worker` has its twins in `jax_*`.
"""
