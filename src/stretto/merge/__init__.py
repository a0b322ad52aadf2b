"""Merging checkpoints, file to file: models larger than memory, read and written as streams.

``run`` merges by a recipe, ``plan`` says what it would do, ``Checkpoint`` reads a model's tensors
when they are asked for, and ``method`` makes a method of one's own. Next, read ``methods``, then
``planning`` and ``running``.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.merge.aligning import Graph as Graph, align as align
    from stretto.merge.aligning import llama_graph as llama_graph, stack_graph as stack_graph
    from stretto.merge.checkpoints import Checkpoint as Checkpoint
    from stretto.merge.extracting import Extracted as Extracted, extract_lora as extract_lora
    from stretto.merge.in_memory import trees as trees
    from stretto.merge.methods import Each as Each, METHODS as METHODS, Method as Method
    from stretto.merge.methods import method as method
    from stretto.merge.planning import Plan as Plan, plan as plan
    from stretto.merge.recipes import Recipe as Recipe, read_recipe as read_recipe
    from stretto.merge.running import Report as Report, run as run
    from stretto.merge.searching import Evolved as Evolved, GreedySoup as GreedySoup
    from stretto.merge.searching import Optimum as Optimum, cma_es as cma_es, evolve as evolve
    from stretto.merge.searching import greedy_soup as greedy_soup

exports(
    __name__,
    """
    .aligning: Graph align llama_graph stack_graph
    .checkpoints: Checkpoint
    .extracting: Extracted extract_lora
    .in_memory: trees
    .methods: Each METHODS Method method
    .planning: Plan plan
    .recipes: Recipe read_recipe
    .running: Report run
    .searching: Evolved GreedySoup Optimum cma_es evolve greedy_soup
    """,
)
