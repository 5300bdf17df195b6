"""Labels at a mode of more parameters than annotations."""

from collections.abc import Iterator

import numpy as np

from ...models.parts.general import PARTS
from ..densities.sites import parameter_spec
from ..fitted.fitted import Fitted
from .register import Said, check


@check("mode_of_many", "draws", needs={"story", "memory"})
def mode_of_many(of: Fitted) -> Iterator[Said]:
    """Label probabilities at EM's mode of a story with parts, where its tables have more numbers than annotations.

    The mode is one of many sets of parameters that the annotations allow, and its label probabilities know nothing of
    the others. Of crowds drawn with shared errors and difficulties of tasks, 20 classes, 1,000 tasks and five
    annotations each, EM says that 99 % of the labels are right where 85 to 90 % are: a warning. With one of these parts
    it is a note. Of healthy crowds it is said where there are ten classes, at a mean probability of .99 and an accuracy
    of .92 (``benchmarks/one_finding.py``).
    """
    parts = [part for part in PARTS if of.model.hyperparameters.get(part.name)]
    if of.method != "em" or not parts:
        return
    tables = [of.draws[name][0, 0] for name in parameter_spec(of.model, of.data).tables if name in of.draws]
    n_parameters = sum(table.size - table.size // table.shape[-1] for table in tables)
    if n_parameters <= (n_annotations := of.annotations.n_annotations):
        return
    said = float(np.asarray(of.posterior).max(1).mean())
    yield Said(
        f"EM takes the mode of {n_parameters:,} probabilities, with {' and '.join(part.says for part in parts)}, from "
        f"{n_annotations:,} annotations: its label probabilities, {said:.2f} in the mean, are too near to 1",
        "Fit with method='svi' or 'nuts', which average over the posterior; or take a story with fewer parameters, "
        "such as one_coin",
        {"parameters": n_parameters, "annotations": n_annotations, "confidence": said},
        severity="warning" if len(parts) > 1 else "note",
    )
