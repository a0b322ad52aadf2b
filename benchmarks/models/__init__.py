"""The networks, losses and the optimizer of the ensembles, the same in every framework.

Each file states one member's mathematics in plain functions of one framework: `apply` by the
model's name, `loss` (mean squared error), and `train_step` (softmax cross-entropy, AdamW).
"""
