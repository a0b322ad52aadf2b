"""``stretto demo``: the framework's main job, end to end, on real data.

Ten classifiers, each with its own key, bootstrap and learning rate, are trained at once by one
compiled step, then combined and scored. ``data`` reads the images, ``training`` trains,
``comparison`` scores and draws, and ``run`` is the command; ``options`` has its options and errors.
"""
