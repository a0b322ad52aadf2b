"""``stretto demo``: the framework's main job, end to end, on real data.

Ten classifiers, each with its own key, bootstrap and learning rate, are trained at once by one
compiled step, then combined and scored. Read in this order: ``classifier`` (one model, one step),
``training`` (all of them), ``scoring``, ``timing``, ``picture``, ``run`` (the command). ``data``
and ``idx`` read the images; ``options``, ``extras`` and ``errors`` serve the command line.
"""
