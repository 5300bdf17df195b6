"""One story by EM or SVI to annotations on the disk: a scan in, a `StreamedFit` out."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd

from ..data.chunks import Chunk
from ..data.errors import check_name
from ..data.prepared import Prepared, open_prepared
from ..data.scan import Scan
from ..models import Classifier, Story, StoryError, TruthPrior, find_story
from ..models.parts.general import unwrapped
from ..models.parts.truth_prior import Given
from .densities.emission_rows import check_rows
from .densities.enumerated import Parameters, density
from .densities.model import Model
from .densities.program_cache import use_program_cache
from .densities.programs import compiled
from .densities.sites import Dims, parameter_dims
from .densities.traced_numbers import with_numbers
from .engines import em, online_em, same_fit, svi
from .engines.checkpoints import EVERY, NOWHERE, Wish, opened
from .engines.outcome import Outcome
from .engines.progress import doing
from .engines.registry import ENGINES, check_method
from .engines.settings import EMSettings, SVISettings, checked_seed
from .engines.unused_options import refuse_unused, unused_by_em, unused_by_svi
from .fit_story import split_options
from .fitted.streamed import StreamedFit
from .sources.on_disk import IN_MEMORY, Files, check_draws, suited_files
from .sources.starting import parameter_shapes, start_from, start_sums

LOOK = 2**14  # rows of a chunk that a story is tried with, before it is known what fits into memory
STOCHASTIC_CHUNKS = 100  # at the most, and steps in a pass where each chunk is one
IN_CHUNKS = "a scan is read in chunks, whose size follows from scan(…, memory=…); leave it out"


class Way(NamedTuple):
    """Method of fitting a story to chunks."""

    method: str
    run: Callable[..., Outcome]
    defaults: dict[str, Any]  # of options, where they are others than in memory
    same: tuple[str, ...]  # options that a fit which goes on must have in common with the earlier one


WAYS = {
    "exact": Way(
        "em",
        em.run,
        {},
        ("learning_rate", "halvings", "accelerate"),
    ),
    "stochastic": Way(
        "em",
        online_em.run,
        {"epochs": online_em.PASSES},
        ("learning_rate", "halvings"),
    ),
    "svi": Way(
        "svi",
        svi.run,
        {},
        ("learning_rate", "max_iterations", "guide", "particles"),
    ),
}
"""By the step of EM, or the engine's name."""


def stream_story(
    story: str | Story,
    scan: Scan,
    *,
    method: str = "em",
    classifier: Any = None,
    truth_prior: TruthPrior | pd.DataFrame | np.ndarray | None = None,
    gold: Any = None,
    evidence: Any = None,
    probabilities: Any = None,
    seed: int = 0,
    backend: str = "numpyro",
    devices: Any = None,
    progress: bool = True,
    folder: str | os.PathLike[str] | None = None,
    checkpoints: Wish | None = None,
    step: str = "exact",
    **options: Any,
) -> StreamedFit:
    """Fit one story by EM or SVI to annotations on the disk; arguments and errors are those of :func:`crowdppl.fit`.

    Args:
        story: a story's name, or a function that keeps the contract.
        scan: the files.
        method: ``"em"``, or ``"svi"``: :mod:`.engines.svi`, each step of which takes a chunk.
        classifier: none.
        truth_prior: a prior that is the same for all tasks.
        gold: none.
        evidence: none.
        probabilities: none.
        seed: of random starting values.
        backend: ``"numpyro"``.
        devices: none.
        progress: show progress bars.
        folder: where the fit's state is kept after each pass; the same call goes on from there.
        checkpoints: where it is kept as often as asked, also within a pass.
        step: of EM: ``"exact"``, an iteration for each pass over the data, as in memory; or ``"stochastic"``, a step
            after each chunk: :mod:`.engines.online_em`, which makes ``epochs`` passes, 5 by default.
        options: hyperparameters and options of the engine.

    Raises:
        StoryError: the story's parameters grow with the tasks, it reads what no chunk has, or it needs more memory than
            is allowed.
        StorageError: the folder holds another fit, or the disk is full.
        ValueError: an option that a streamed fit does not have.
    """
    if story == "auto":
        raise ValueError(
            "story='auto' compares stories on held-out annotations in memory; name one story for a scan, such as "
            f"'dawid_skene', or {IN_MEMORY}"
        )
    name = check_name("value of step", step, ("exact", "stochastic"))
    if check_method(method) == "svi":
        if step != "exact":
            raise ValueError(
                f"step={step!r} belongs to method='em', and SVI takes a step after each chunk; leave it out"
            )
        name = "svi"
    elif method != "em":
        raise ValueError(f"method={method!r}: a scan is fitted by method='em' or 'svi'; {IN_MEMORY}")
    way = WAYS[name]
    _refuse_by_task(
        classifier=classifier, truth_prior=truth_prior, gold=gold, evidence=evidence, probabilities=probabilities
    )
    if backend != "numpyro":
        raise ValueError(f"backend={backend!r}: a scan is fitted by backend='numpyro'")
    if devices is not None:
        raise ValueError(f"devices={devices!r}: a scan is read by one device; leave it out, or {IN_MEMORY}")
    seed = checked_seed(seed)
    found, options = unwrapped(find_story(story), options)
    hyperparameters, settings, _ = split_options(way.defaults | options, found, ENGINES[method], ())
    _refuse_options(settings, name)
    model = Model(found, hyperparameters if truth_prior is None else hyperparameters | {"truth_prior": truth_prior})
    use_program_cache()
    wish = Wish(None) if checkpoints is None else checkpoints
    if folder is not None and wish.folder is not None:
        raise ValueError(
            f"folder={os.fspath(folder)!r} and checkpoint={os.fspath(wish.folder)!r} both keep the state; give one"
        )
    if folder is not None:
        wish = Wish(Path(folder).absolute(), EVERY, resume=None, milestones=True)
    where = wish.folder
    with doing(f"coding and sorting {scan.n_rows:,} rows", show=progress):
        prepared = open_prepared(scan, where)
    keep = NOWHERE
    if where is not None:
        same = {option: same_fit.described(getattr(settings, option)) for option in way.same} | {"step": name}
        keep = opened(
            wish, same_fit.about_fit(model, files=f"#{prepared.fingerprint}", seed=seed, method=method, options=same)
        )
    earlier = keep.found("rows")
    dims = checked_dims(model, prepared)
    model = with_numbers(model, Files(prepared, prepared.cut(LOOK), model).like)
    n_batches = 1 if name == "exact" else STOCHASTIC_CHUNKS
    needed = partial(em.bytes_needed, model)
    source = suited_files(model, prepared, scan.memory, needed, n_rows=earlier, n_batches=n_batches)
    key = jax.random.key(seed)
    refuse_whole_data(model, source, key)

    if isinstance(settings, SVISettings) and not svi.is_a_point(settings.guide):
        check_draws(model, source, settings.draws, scan.memory)
    keep.note("rows", lambda: source.cut.asked)  # of a chunk, on which the rounding of sums depends
    with keep.guarded():
        outcome = way.run(model, source, key, settings, progress=progress, keep=keep)
        keep.write()
    kept = settings._asdict() | {"seed": seed, "backend": backend, "step": step}
    return StreamedFit(prepared, source, model, outcome, kept, dims, progress, method)


def checked_dims(model: Model, prepared: Prepared) -> Dims:
    """Return the names of the parameters' dimensions.

    Raises:
        StoryError: the story does not fit these data, or a parameter or hyperparameter grows with the tasks.
    """
    name = model.story.__name__
    for option, value in model.hyperparameters.items():
        if np.ndim(value) and len(value) == prepared.n_tasks != len(prepared.n_by_worker):
            raise StoryError(f"{name}({option}=…) has a value for each task, and a scan is read in chunks; {IN_MEMORY}")
    source = Files(prepared, prepared.cut(LOOK), model)
    wider = source.cut._replace(n_rows=source.cut.n_rows + 8, n_tasks=source.cut.n_tasks + 8)
    try:
        dims, shapes = parameter_dims(model, source.like), _shapes(model, source)
        others = _shapes(model, Files(prepared, wider, model))
        check_rows(model, prepared.chunk(source.cut, 0, with_names=True))
    except StoryError as error:
        getattr(error, "__notes__", []).clear()  # what JAX has to say of its own frames
        raise
    for site, found in dims.items():
        if {"task", "row"} & set(found) or shapes[site] != others[site]:
            raise StoryError(
                f"{name}: {site!r} has a value for each task, so that its parameters grow with the tasks and a scan "
                f"cannot be fitted; fit a story whose parameters belong to workers or classes, such as dawid_skene or "
                f"one_coin, or {IN_MEMORY}"
            )
    return dims


def refuse_whole_data(model: Model, source: Files, key: jax.Array) -> None:
    """Refuse a story of a user's own that reads something of all annotations where it sees a chunk of them.

    Raises:
        StoryError: a start, or the priors, differ between the first chunk and the last, with the site.
    """
    if source.n_batches < 2:
        return
    ends = [source.like, source.batch(source.n_batches - 1)]
    totals = [np.ones(x.shape, x.dtype) for x in jax.eval_shape(start_sums, model, ends[0], key)]
    starts = [start_from(model, chunk, key, totals) for chunk in ends]
    for site, value in starts[0].items():
        if not np.allclose(value, starts[1][site], rtol=1e-4, atol=1e-6, equal_nan=True):
            raise StoryError(
                f"{model.story.__name__}: the start of {site!r} is taken from the annotations, and a scan is read in "
                f"chunks; make it a sum by the functions of crowdppl.models.parts.starts, or {IN_MEMORY}"
            )
    priors = [float(_log_prior(model, chunk, starts[0])) for chunk in ends]
    if not np.isclose(priors[0], priors[1], rtol=1e-4, equal_nan=True):
        raise StoryError(
            f"{model.story.__name__}: the priors of its parameters depend on the annotations, and a scan is read in "
            f"chunks; {IN_MEMORY}"
        )


@compiled
def _log_prior(model: Model, chunk: Chunk, parameters: Parameters) -> jax.Array:
    return density(model, parameters, chunk).log_prior


def _shapes(model: Model, source: Files) -> dict[str, tuple[int, ...]]:
    return {name: leaf.shape for name, leaf in parameter_shapes(model, source.like).items()}


def _refuse_by_task(*, classifier: Any, truth_prior: Any, gold: Any, evidence: Any, probabilities: Any) -> None:
    """Refuse what is known of single tasks, which a scan has no place for."""
    given = {
        "classifier": classifier is not None,
        "truth_prior": isinstance(truth_prior, Classifier | Given | pd.DataFrame | np.ndarray),
        "gold": gold is not None and gold is not False,
        "evidence": evidence is not None,
        "probabilities": probabilities is not None,
    }
    for name in (name for name, is_given in given.items() if is_given):
        raise ValueError(f"{name}= says something of single tasks, which a fit of a scan does not take; {IN_MEMORY}")


def _refuse_options(settings: EMSettings | SVISettings, way: str) -> None:
    """Refuse options that a fit of a scan would not use."""
    if isinstance(settings, SVISettings):
        unused = unused_by_svi(has_network=False, has_weights=False, is_point=svi.is_a_point(settings.guide))
        refuse_unused(settings, unused | {"batch_size": IN_CHUNKS})
        return
    unused = unused_by_em(in_batches=way == "stochastic", has_weights=False, holds_out=False)
    unused["batch_size"] = IN_CHUNKS
    unused["restarts"] = "a scan is fitted from one start; leave it out"
    reason = "a scan takes no part of its annotations out; leave it out"
    refuse_unused(settings, unused | dict.fromkeys(("warmup", "held_out", "patience"), reason))
