"""The programs: each is one task, as a user of JAX and of the libraries writes it.

They know nothing of Stretto. Each has two functions, for one member and for an ensemble by `vmap`,
and hands them to `serving.serve`.
"""
