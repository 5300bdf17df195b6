"""Options of the EM engine, in one place for its two ways: whole-data iterations, and epochs of minibatches."""

from typing import NamedTuple


class EMSettings(NamedTuple):
    """Options of ``method="em"``.

    A story without a network is fitted by iterations over all data. A network (``Classifier`` of any kind but
    ``"logistic"``), or a ``batch_size``, asks for epochs of minibatches instead.

    Args:
        max_iterations: iterations of one start at the most.
        tolerance: relative change of the log-posterior below which EM has converged.
        restarts: starts; after the first, the votes to start from are perturbed. The best solution is kept.
        learning_rate: of Adam, for real-valued parameters that are no classifier's weights.
        halvings: times that a step is halved at the most, until the log-posterior does not fall.
        epochs: passes over the data in minibatches.
        batch_size: tasks in a minibatch; None for 64 with a network, and all without.
        network_rate: Adam's learning rate of a network's weights.
        warmup: epochs at the start in which a network learns from the soft majority vote, not yet from the posterior.
        held_out: share of the annotations that are kept from training, and watched: training stops where their
            log-probability given the other annotations has not risen for ``patience`` epochs, and the best epoch's
            parameters are kept. 0 trains on all annotations for all epochs.
        patience: see ``held_out``.
    """

    max_iterations: int = 1000
    tolerance: float = 1e-6
    restarts: int = 1
    learning_rate: float = 0.05
    halvings: int = 10
    epochs: int = 50
    batch_size: int | None = None
    network_rate: float = 3e-4
    warmup: int = 1
    held_out: float = 0.0
    patience: int = 10
