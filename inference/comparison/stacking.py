"""Labels averaged over several stories, with weights by how well each predicts held-out data."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from ...data.errors import check_name, real_number
from ..fitted.fitted import Fitted
from ..fitted.misled import checked
from ..fitted.posterior import Posterior
from .comparing import by_name, check_same_data, compare


def averaged(
    fits: Mapping[str, Posterior | Fitted] | Iterable[Posterior | Fitted],
    weights: Mapping[str, float] | pd.Series | None = None,
    *,
    votes: float = 0.0,
    misled: float | None = 0.0,
    power: float | None = None,
    **options: object,
) -> Posterior:
    """Average fits of the same annotations by stacking weights: see :func:`crowdppl.stack`."""
    named, votes = by_name(fits, least=2 if weights is None else 1), real_number("votes", votes, 0, below=1)
    misled = None if misled is None else checked(misled)
    if weights is None and power is not None:
        raise ValueError(f"power={power!r}: with a power the votes are one of the weights; give weights")
    if weights is None:
        comparison = compare(named, **options)  # type: ignore[arg-type]
        return Posterior(named, comparison["weight"].reindex(list(named)), comparison, votes=votes, misled=misled)
    if options:
        raise ValueError(
            f"weights are given, so nothing is compared; leave out {', '.join(map(repr, options))}, or weights"
        )
    check_same_data(named)
    power = None if power is None else real_number("power", power, above=0)
    return Posterior(named, _given(dict(weights), named), votes=votes, misled=misled, power=power)


def _given(weights: Mapping[str, float], fits: Mapping[str, Fitted]) -> pd.Series:
    """The weights of all fits, by name, scaled to sum 1; 0 where none was given."""
    for name, weight in weights.items():
        check_name("fit", name, fits)
        if not (np.isfinite(weight) and weight >= 0):
            raise ValueError(f"the weight of {name!r} is {weight!r}: a finite number from 0 is needed")
    found = pd.Series({name: float(weights.get(name, 0.0)) for name in fits}, name="weight").rename_axis("story")
    if not found.sum() > 0:
        raise ValueError("all weights are 0; at least one has to be positive")
    return found / found.sum()
