r"""A mix of stories and votes, whose weights and one power are learned from gold labels.

Each of S components, stories and the votes, gives label probabilities :math:`P_s`, and all are too sure in much the
same way. So the mix is

.. math::
    Q_{ik} = \sum_s w_s \frac{P_s(z_i = k)^\gamma}{\sum_l P_s(z_i = l)^\gamma}, \qquad
    (w, \gamma) = \text{argmax} \sum_{i \text{ gold}} \log Q_{i z_i} + a \sum_s \bar w_s \log w_s
    - b \, (\log \gamma - m)^2,

the mode under a Dirichlet prior of the weights around :math:`\bar w`, which counts for a gold labels, and a normal one
of the power's logarithm. The probabilities are kept above :data:`LEAST`, since a story that is sure and wrong is not
excluded by that. For a fixed power the weights are found by EM. ``benchmarks/gold.py`` chooses a, b, m and the weights
for each dataset on the others.
"""

from typing import NamedTuple

import numpy as np

from ...data import Annotations

LEAST = 1e-3  # probability of a class in a component
PRIOR = 5.0  # gold labels that the expected weights count for
CENTRE, STIFFNESS = -0.3, 4.0  # of the power's logarithm
POWERS = np.exp(np.linspace(-2.0, 0.75, 23))
ITERATIONS = 60  # of EM over the weights


class Mix(NamedTuple):
    """A mix that gold labels taught."""

    weights: np.ndarray  # (S,), which sum to 1
    power: float


def shares_of_votes(annotations: Annotations) -> np.ndarray:
    """The votes as label probabilities, with one more spread over all classes, ``(N, K)``."""
    votes = np.asarray(annotations.votes(), dtype=float)
    return (votes + 1 / votes.shape[1]) / (votes.sum(1, keepdims=True) + 1)


def tempered(probabilities: np.ndarray, power: float) -> np.ndarray:
    """Label probabilities ``(..., K)`` to a power, scaled to sum 1."""
    raised = np.maximum(probabilities, LEAST) ** power
    found: np.ndarray = raised / raised.sum(-1, keepdims=True)
    return found


def mixed(components: np.ndarray, mix: Mix) -> np.ndarray:
    """The mix ``(N, K)`` of label probabilities ``(S, N, K)``."""
    total: np.ndarray = np.tensordot(mix.weights, tempered(components, mix.power), axes=1)
    return total / total.sum(-1, keepdims=True)


def learned(
    components: np.ndarray,
    gold: np.ndarray,
    expected: np.ndarray,
    *,
    prior: float = PRIOR,
    centre: float = CENTRE,
    stiffness: float = STIFFNESS,
) -> Mix:
    """Weights and power from gold labels, at the mode.

    Args:
        components: label probabilities of the gold tasks by each component, which no gold label has taught,
            ``(S, n, K)``.
        gold: their gold labels as positions of classes, ``(n,)``.
        expected: weights without gold labels, ``(S,)``, above 0.
        prior: how many gold labels they count for.
        centre: of the power's logarithm, that is expected.
        stiffness: of this expectation.
    """
    expected = expected / expected.sum()
    at_gold = np.stack([tempered(components, power)[:, np.arange(len(gold)), gold] for power in POWERS])  # (G, S, n)
    weights = np.broadcast_to(expected, at_gold.shape[:2])
    for _ in range(ITERATIONS):
        parts = weights[..., None] * at_gold
        weights = prior * expected + (parts / parts.sum(1, keepdims=True)).sum(-1)
        weights = weights / weights.sum(1, keepdims=True)
    log_score = np.log((weights[..., None] * at_gold).sum(1)).sum(-1)
    log_prior = prior * np.log(weights) @ expected - stiffness * (np.log(POWERS) - centre) ** 2
    best = int(np.argmax(log_score + log_prior))
    return Mix(weights[best], float(POWERS[best]))
