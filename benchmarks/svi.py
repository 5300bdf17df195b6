"""SVI on Dawid–Skene: the truth summed out by crowdppl, beside the same story under NumPyro's own enumeration.

Both have the same guide, optimiser and start. ``Trace_ELBO`` runs on the program without ``truth``,
``TraceEnum_ELBO`` on the story as it is written.
"""

import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
import typer
from jax import Array
from numpyro.contrib.funsor import config_enumerate
from numpyro.infer import SVI, Trace_ELBO, TraceEnum_ELBO, init_to_value
from numpyro.infer.autoguide import (
    AutoDelta,
    AutoGuide,
    AutoLowRankMultivariateNormal,
    AutoMultivariateNormal,
    AutoNormal,
)
from support.data import data_folder, read_annotations
from support.report import Report
from support.timing import interleaved

import crowdppl as cp
from crowdppl.inference.densities.marginals import marginal_program
from crowdppl.inference.densities.model import Model
from crowdppl.inference.engines import em
from crowdppl.models import find_story

GUIDES = (AutoNormal, AutoDelta, AutoMultivariateNormal, AutoLowRankMultivariateNormal)
LEARNING_RATE = 0.02
CHUNK = 100  # compiled steps at a time
ELBO_PARTICLES = 20  # draws of the guide that the ELBO in the end is averaged over


class Way(NamedTuple):
    """One way to sum out the truth."""

    program: Callable[..., None]
    objective: type[Trace_ELBO]


def main(steps: int = 1_000, repeats: int = 5, write: bool = False) -> None:
    """Measure, and print what was found.

    Args:
        steps: of Adam, before the ELBO is looked at.
        repeats: rounds of timing that both ways take turns in.
        write: refresh this section of RESULTS.md.
    """
    data_folder()
    check_agreement()
    report = Report("SVI: the truth summed out by crowdppl and by NumPyro")
    rows = [row for name in ("rte", "trec") for row in compare(name, steps, repeats)]
    report.table("AutoNormal, one particle", rows, absolute=["ms a step"])
    report.note(
        f"The ELBO is that of the fitted guide, by one objective for both: Trace_ELBO without the truth, "
        f"{ELBO_PARTICLES} particles, one seed."
    )
    report.table(f"Guides on anesthesia, {CHUNK} steps", [try_guide(guide) for guide in GUIDES])
    if write:
        report.write()


def ways(model: Model) -> dict[str, Way]:
    """Ours and NumPyro's."""
    return {
        "crowdppl, Trace_ELBO": Way(marginal_program(model), Trace_ELBO),
        "NumPyro, TraceEnum_ELBO": Way(config_enumerate(model), TraceEnum_ELBO),
    }


def check_agreement() -> None:
    """Stop unless both ways give the same density: else they would be timed at different work."""
    annotations, model = cp.load_dataset("anesthesia"), Model(find_story("dawid_skene"))
    losses = {}
    for way, parts in ways(model).items():
        run = Run(model, *parts, AutoDelta, annotations)  # a guide without noise
        losses[way] = float(run.engine.evaluate(run.state, annotations))
    ours, theirs = losses.values()
    if not np.isclose(ours, theirs, rtol=1e-4):
        sys.exit(f"the two ways disagree on the density at EM's solution, so they cannot be compared: {losses}")


def compare(name: str, steps: int, repeats: int) -> list[dict[str, object]]:
    """A row for each way: time of a step, and the ELBO after all of them."""
    annotations = jax.device_put(cp.Annotations.from_frame(read_annotations(name)))
    model = Model(find_story("dawid_skene"))
    runs = {way: Run(model, *parts, AutoNormal, annotations) for way, parts in ways(model).items()}
    for run in runs.values():
        run.advance(steps)
    elbos = {way: run.elbo() for way, run in runs.items()}
    seconds = interleaved({way: partial(run.advance, CHUNK) for way, run in runs.items()}, repeats)
    theirs = seconds["NumPyro, TraceEnum_ELBO"]
    return [
        {
            "data": name,
            "way": way,
            "ms a step": 1e3 * float(np.median(seconds[way])) / CHUNK,
            "times faster": float(np.median(theirs / seconds[way])),
            f"ELBO after {steps:,} steps": elbos[way],
        }
        for way in runs
    ]


class Run:
    """SVI that goes on from where it stands, from EM's solution.

    Args:
        model: the story.
        program: what the objective runs on.
        objective: Trace_ELBO or TraceEnum_ELBO.
        guide: one of NumPyro's automatic guides.
        annotations: the data.
    """

    def __init__(
        self,
        model: Model,
        program: Callable[..., None],
        objective: type[Trace_ELBO],
        guide: type[AutoGuide],
        annotations: cp.Annotations,
    ) -> None:
        self.annotations = annotations
        settings = em.EMSettings(tolerance=1e-5)
        start = em.solve(model, annotations, jax.random.key(0), settings, progress=False).parameters
        # The guide has no site for the truth, so it is made from the program without it.
        self.guide = guide(marginal_program(model), init_loc_fn=init_to_value(values=start))
        self.engine = SVI(program, self.guide, optax.adam(LEARNING_RATE), objective())
        self.judge = SVI(
            marginal_program(model), self.guide, optax.adam(LEARNING_RATE), Trace_ELBO(num_particles=ELBO_PARTICLES)
        )
        self.state = jax.jit(self.engine.init)(jax.random.key(1), annotations)
        self.chunk = jax.jit(self._chunk)

    def advance(self, steps: int) -> None:
        """Take steps, a hundred at a time."""
        for _ in range(steps // CHUNK):
            self.state = jax.block_until_ready(self.chunk(self.state, self.annotations))

    def elbo(self) -> float:
        """The evidence lower bound of the guide as it stands."""
        params = self.engine.get_params(self.state)
        loss = partial(self.judge.loss.loss, jax.random.key(2), params, self.judge.model, self.guide)
        return -float(jax.jit(loss)(self.annotations))

    def _chunk(self, state: Any, annotations: cp.Annotations) -> Any:
        def step(state: Any, _: None) -> tuple[Any, Array]:
            return self.engine.update(state, annotations)

        return jax.lax.scan(step, state, length=CHUNK)[0]


def try_guide(guide: type[AutoGuide]) -> dict[str, object]:
    """Whether a guide runs, each way; the error where it does not."""
    annotations = jax.device_put(cp.load_dataset("anesthesia"))
    model = Model(find_story("dawid_skene"))
    found = {way: attempt(model, parts, guide, annotations) for way, parts in ways(model).items()}
    return {"guide": guide.__name__, **found}


def attempt(model: Model, way: Way, guide: type[AutoGuide], annotations: cp.Annotations) -> str:
    """Take some steps: "works", or what was raised."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = Run(model, *way, guide, annotations)
            run.advance(CHUNK)
            return "works" if np.isfinite(run.elbo()) else "not finite"
    except Exception as error:  # any: the table says which
        return f"{type(error).__name__}: {str(error).splitlines()[0][:60] if str(error) else ''}"


if __name__ == "__main__":
    typer.run(main)
