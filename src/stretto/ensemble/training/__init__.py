"""Training of ensembles: ``Ensemble.fit``, and its parts for training loops of your own.

``training_data``: which examples, when · ``train_state``: all that training has reached · ``step``
and ``trainer``: one compiled step · ``evaluation`` and ``checkpoints`` beside it ·
``fit_callbacks``, which may stop it, and ``loggers`` · ``fit_arguments``, ``fit`` with
its ``loop``, and what it gives, ``fitted`` · ``executors``, whose workers train parts.
"""
