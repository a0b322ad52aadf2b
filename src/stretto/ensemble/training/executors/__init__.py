"""Training by the workers of executors: process pools, Dask, MPI, Ray, SLURM by submitit, joblib.

``engines``: any of these as something with ``submit`` · ``parts``: what travels, a traced step with
weights, data and settings, as files · ``worker``: what is run there · ``driver``: cuts members into
parts, hands them out, tries again what was lost, and puts results together.
"""
