"""``stretto.optim``: optimizers as transformations of gradients, in optax's form.

An optimizer has ``init(params)``, which makes its state, and ``update(grads, state, params)``,
which gives the updates and the new state; ``apply_updates`` adds them. Names, arguments, defaults
and values are those of optax. ``per_member`` transforms each member of a stacked ensemble alone,
with hyperparameters of its own. Read ``base`` first, then ``moments`` and ``combining``.

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

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.optim.combining import *
    from stretto.optim.base import *
    from stretto.optim.moments import *
    from stretto.optim.optimizers import *
    from stretto.optim.sampling import *
    from stretto.optim.scaling import *
    from stretto.optim.schedules import *

exports(
    __name__,
    """
    .combining: ApplyIfFiniteState InjectStatefulHyperparamsState MaskedState MultiSteps
        MultiStepsState PartitionState ScheduleState apply_if_finite chain inject_hyperparams masked
        multi_transform named_chain per_member skip_not_finite
    .base: EmptyState GradientTransformation GradientTransformationExtraArgs Mask MaskedNode
        ScalarOrSchedule Schedule apply_updates identity incremental_update periodic_update
        safe_increment set_to_zero stateless with_extra_args_support
    .moments: EmaState FactoredState ScaleByAdaDeltaState ScaleByAdamState ScaleByAmsgradState
        ScaleByBeliefState ScaleByLionState ScaleByRStdDevState ScaleByRStdDevWithCountState
        ScaleByRmsState ScaleByRmsWithCountState ScaleByRssState TraceState ema scale_by_adadelta
        scale_by_adam scale_by_adamax scale_by_amsgrad scale_by_belief scale_by_factored_rms
        scale_by_lion scale_by_radam scale_by_rms scale_by_rss scale_by_stddev scale_by_yogi trace
    .optimizers: adabelief adadelta adafactor adagrad adam adamax adamaxw adamw amsgrad lamb lars
        lion nadam nadamw noisy_sgd radam rmsprop sgd yogi
    .sampling: IVONState PSGLDState SGHMCState SGLDState ivon psgld sghmc sgld
    .scaling: AddNoiseState ScaleByScheduleState WeightDecaySchedule adaptive_grad_clip
        add_decayed_weights add_noise clip clip_by_block_rms clip_by_global_norm global_norm scale
        scale_by_learning_rate scale_by_param_block_rms scale_by_schedule scale_by_trust_ratio
    .schedules: constant_schedule cosine_decay_schedule cosine_onecycle_schedule cyclical_schedule
        cyclical_temperature_schedule exponential_decay join_schedules linear_onecycle_schedule
        linear_schedule piecewise_constant_schedule piecewise_interpolate_schedule
        polynomial_schedule sgdr_schedule warmup_constant_schedule warmup_cosine_decay_schedule
        warmup_exponential_decay_schedule
    """,
)
