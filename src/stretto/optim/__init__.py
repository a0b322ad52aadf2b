"""``stretto.optim``: optimizers as transformations of gradients, in optax's form.

An optimizer has ``init(params)``, which makes its state, and ``update(grads, state, params)``,
which gives the updates and the new state; ``apply_updates`` adds them. Names, arguments, defaults
and values are those of optax. ``per_member`` transforms each member of a stacked ensemble alone,
with hyperparameters of its own. Read ``base`` first, then ``leaves``, ``moments`` and ``members``.

>>> import stretto as st, stretto.numpy as snp
>>> params = {"w": snp.array([1.0, -2.0])}
>>> loss = lambda params: snp.sum(params["w"] ** 2)
>>> optimizer = st.optim.adamw(0.1)
>>> state = optimizer.init(params)
>>> @st.jit
... def step(params, state):
...     updates, state = optimizer.update(st.grad(loss)(params), state, params)
...     return st.optim.apply_updates(params, updates), state
>>> for _ in range(50):
...     params, state = step(params, state)
>>> bool(loss(params) < 0.1)
True
"""

# ruff: noqa: F403 (each file's __all__ says what it gives)

from stretto._engine.core.lazy import imports_on_demand

with imports_on_demand(__name__):
    from stretto.optim.accumulation import *
    from stretto.optim.adams import *
    from stretto.optim.base import *
    from stretto.optim.clipping import *
    from stretto.optim.combining import *
    from stretto.optim.cycles import *
    from stretto.optim.factored import *
    from stretto.optim.finite import *
    from stretto.optim.hyperparameters import *
    from stretto.optim.leaves import safe_increment as safe_increment
    from stretto.optim.masking import *
    from stretto.optim.members import *
    from stretto.optim.moments import *
    from stretto.optim.momentum import *
    from stretto.optim.norms import *
    from stretto.optim.optimizers import *
    from stretto.optim.rms import *
    from stretto.optim.scaling import *
    from stretto.optim.schedules import *
    from stretto.optim.updating import *
