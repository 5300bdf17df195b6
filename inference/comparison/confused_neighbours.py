r"""The order of classes as annotations bear it out: those who disagree disagree by little.

With :math:`m_{kl}` how many pairs of annotations of one task say k and l, the log-odds ratio

.. math:: d_{kl} = \tfrac12 \log \frac{m_{kk} \, m_{ll}}{m_{kl}^2}

says how far apart two classes are, whatever the shares of the classes. Along a scale the outer two of three classes are
furthest apart. Of names in any order that holds of a third of all threes.
"""

import numpy as np

from ...data import Annotations

HALF = 0.5  # a pair that is added to each m, without which few annotations would say nothing
MOST = 0.5  # of all threes, above which the order is borne out


def neighbours_are_confused(annotations: Annotations) -> bool:
    """Return whether of most three classes the outer two, in the order of the classes, are furthest apart.

    It is so of adult, anesthesia, judges_asset, rubric_campus and the simulated crowds of ``benchmarks/ordered.py``. It
    is not of dog, fact_eval, weather_amt, music, labelme and cifar10h, whose classes are names, of relevance, of which
    one is beside the order, and of rubric_amt, which is nearly noise. These were in view when it was chosen, and labels
    of adult. Of three names a third of the orders pass.

    Args:
        annotations: of three classes or more.
    """
    votes = annotations.votes().astype(float)
    n = votes.sum(1)
    weight = votes / np.maximum(n - 1, 1)[:, None]
    pairs = weight.T @ votes - np.diag(weight.sum(0)) + HALF
    same = np.log(np.diag(pairs))
    apart = (same[:, None] + same) / 2 - np.log(pairs)
    is_furthest = [
        apart[:middle, middle + 1 :] > np.maximum(apart[:middle, middle, None], apart[middle, middle + 1 :])
        for middle in range(1, annotations.n_classes - 1)
    ]
    return bool(np.concatenate([of_middle.ravel() for of_middle in is_furthest]).mean() > MOST)
