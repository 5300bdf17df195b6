"""One story by one engine: annotations in, a `Fitted` out. `crowdppl.fit` calls it, and comparison refits with it."""

import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.sharding import Mesh

from ..data import AnnotationError, Annotations, unknown_name
from ..data.arrays import rows_of
from ..data.errors import UnknownNameError, check_name, look_up, warn
from ..data.exports.reading import OPTIONS as OF_ANNOTATIONS
from ..data.exports.reading import read
from ..data.id_text import listing, name_quoted
from ..data.packed import PackedStore
from ..data.scan import Scan
from ..data.some_tasks import changed_tasks
from ..data.store import open_store
from ..models import Classifier, Story, StoryError, TruthPrior, find_story
from ..models.parts.classifier import Network
from ..models.parts.general import hyperparameters_of, split_parts, takes_any
from ..models.parts.shared_error import families_frame, more_families, without_family
from ..models.parts.truth_prior import Given, is_torch_module
from .densities.evidence import Gold, with_abstentions_that, with_evidence, with_truth_prior
from .densities.model import Model
from .densities.portable import known_dims, start_of, with_numbers
from .densities.probabilities import Probabilities, with_probabilities
from .densities.programs import key_of
from .densities.ready_programs import use_program_cache
from .densities.sites import Dims, check_rows, check_steps, parameter_dims
from .engines import em, same_fit, sparse_em, svi
from .engines.checkpoints import NO_CHECKPOINTS, CheckpointOptions, Checkpoints, opened
from .engines.progress import doing
from .engines.registry import ENGINES, EXACT, STOCHASTIC, Engine, check_method, engine_of_files, run_at_size
from .engines.settings import (
    EMSettings,
    SVISettings,
    checked_seed,
    refuse_of_source,
    refuse_unused,
    unused_by_em,
    unused_by_svi,
)
from .findings.constant_workers import left_out_before, without_constant_workers
from .findings.look import look_at
from .findings.of_copies import counted_before, with_copies
from .fitted.alignment import aligned, permutations
from .fitted.averaged_labels import averaged_from_files, averaged_labels
from .fitted.error_families import alone
from .fitted.fitted import Fitted, label_posteriors
from .fitted.learned_prior import learned_prior, to_learn
from .fitted.modes import modes_of
from .sources.devices import mesh_of
from .sources.on_disk import IN_MEMORY, Files, check_draws, refuse_whole_data, suited_files, tried
from .sources.partitioned import Partitioned, packed_by_its_engine

BACKENDS = ("numpyro", "pyro")


def fit_story(
    story: str | Story,
    annotations: Annotations | Scan,
    *,
    method: str = "em",
    classifier: Network | Classifier | Any | None = None,
    truth_prior: TruthPrior | pd.DataFrame | np.ndarray | None = None,
    gold: Gold = None,
    evidence: pd.DataFrame | np.ndarray | None = None,
    probabilities: Probabilities = None,
    abstentions: str | None = None,
    constant_workers: str = "leave_out",
    copies: str = "keep",
    seed: int = 0,
    backend: str = "numpyro",
    devices: int | str | Sequence[Any] | None = None,
    progress: bool = True,
    checkpoints: CheckpointOptions | None = None,
    **options: Any,
) -> Fitted:
    """Fit one story; arguments and errors are those of :func:`crowdppl.fit`, whose `Fit` holds what comes back.

    With ``checkpoints``, also where they name no folder, a sampler that is interrupted gives the draws so far; but not
    as one fit among several, which are all to stop.

    Returns:
        the fitted story, with the findings on it.
    """
    if isinstance(annotations, Scan):
        is_by_task = isinstance(truth_prior, Classifier | Given | pd.DataFrame | np.ndarray)
        refuse_of_source(
            Files.refuses,
            method=None if check_method(method) in ("em", "svi") else method,
            classifier=classifier,
            truth_prior=truth_prior if is_by_task else None,
            gold=gold,
            evidence=evidence,
            probabilities=probabilities,
            abstentions=abstentions,
            constant_workers=None if constant_workers == "leave_out" else constant_workers,
            copies=None if copies == "keep" else copies,
            backend=None if backend == "numpyro" else backend,
            devices=devices,
        )
        options = options if truth_prior is None else options | {"truth_prior": truth_prior}
        return _fit_files(
            story, annotations, method, checked_seed(seed), checkpoints or CheckpointOptions(None), progress, options
        )
    if not isinstance(annotations, Annotations):
        raise AnnotationError(
            f"annotations are needed second, got a {type(annotations).__name__}; make them with "
            "cp.read(path or table), cp.Annotations.from_frame(frame), .from_matrix(matrix), …"
        )
    given = with_abstentions_that(annotations, abstentions)
    annotations, constant = without_constant_workers(given, constant_workers)
    apart: dict[str, Any] = {"constant_workers": constant}
    if copies != "keep":
        counted = with_copies(annotations, copies, labels_by_one_coin)
        apart |= counted.facts(copies, _with_gold(annotations, gold))
        annotations = counted.annotations
    engine = ENGINES[check_method(method)]
    seed = checked_seed(seed)
    program, options = split_parts(find_story(story), options)
    if check_name("backend", backend, BACKENDS) == "numpyro" and is_torch_module(classifier):
        backend = "pyro"
    in_torch = _torch_backend() if backend == "pyro" else None
    mesh = None if devices is None else mesh_of(devices)
    if in_torch is not None:
        if mesh is not None:
            raise ValueError(f"devices={devices!r}: backend='pyro' runs on one device; leave it out")
        engine = in_torch.engine_of(method, classifier)
    of_torch = () if in_torch is None else in_torch.TorchOptions._fields
    hyperparameters, settings, for_torch = split_options(options, program, engine, of_torch)
    hyperparameters, learned = to_learn(program, hyperparameters)
    make = Classifier if in_torch is None else in_torch.prior_of
    prior, annotations = with_truth_prior(annotations, truth_prior, classifier, make=make)
    model = Model(program, hyperparameters if prior is None else hyperparameters | {"truth_prior": prior})
    if mesh is not None and model.truth_prior.joint:
        raise ValueError(f"devices={devices!r}: truths that depend on each other are on one device; leave it out")
    annotations = _with_gold(with_evidence(annotations, gold, evidence), gold)
    if probabilities is not None:
        annotations = with_probabilities(annotations, probabilities)
    use_program_cache()
    data = annotations.as_fitted()
    problem = None if in_torch is None else in_torch.make(model, data, method, for_torch)
    if engine is ENGINES[method]:
        problem = None  # EM without a torch module is JAX's
    if problem is not None:
        data = problem.data
    try:
        dims = known_dims(model, data)  # a story that does not fit these data says so before anything runs
        check_rows(model, data)
        check_steps(model, data)
    except StoryError as error:
        getattr(error, "__notes__", []).clear()  # what JAX has to say of its own frames
        raise

    if learned:
        apart["learned"] = {name: hyperparameters[name] for name in learned}
        model = _with_learned(model, data, dims, seed, learned)
    all_settings = settings._asdict() | {"seed": seed, "backend": backend}
    keep = NO_CHECKPOINTS
    if checkpoints is not None:
        keep = _checkpoints(checkpoints, model, data, method, all_settings | for_torch, mesh)
    with keep.guarded():
        if in_torch is None or problem is None:
            model, key = with_numbers(model, data), key_of(seed)
            outcome = run_at_size(engine, model, data, dims, key, settings, progress=progress, mesh=mesh, keep=keep)
        else:
            outcome, data = in_torch.run(engine, problem, settings, seed, progress=progress, keep=keep)
        keep.write()
        outcome = outcome if progress else outcome._replace(facts={**outcome.facts, "silent": True})
        annotations = annotations.replace(prior=None if data.prior is None else np.asarray(data.prior))
        rows = _given_rows(given, annotations)
        fitted = Fitted(model, annotations, outcome, method, all_settings, dims, given_rows=rows)
        return _looked_at(fitted, apart, is_whole=mesh is None)


def _fit_files(
    story: str | Story,
    scan: Scan,
    method: str,
    seed: int,
    keeping: CheckpointOptions,
    progress: bool,
    options: dict[str, Any],
) -> Fitted:
    """Fit one story to annotations on the disk."""
    if story == "auto":
        raise ValueError(
            "story='auto' compares stories on held-out annotations in memory; name one story for a scan, such as "
            f"'dawid_skene', or {IN_MEMORY}"
        )
    in_partitions = scan.partitions is not None
    if in_partitions and (method, options.get("step", EXACT)) != ("em", EXACT):
        raise ValueError(
            f"method={method!r}, step={options.get('step', EXACT)!r}: partitions are fitted by method='em' with "
            f"step='exact', which is a pass over all of them; leave both out, or {IN_MEMORY}"
        )
    truth_prior = {"truth_prior": options.pop("truth_prior")} if "truth_prior" in options else {}
    step = options.pop("step", EXACT)
    name, engine = engine_of_files(method, step)
    program, options = split_parts(find_story(story), options)
    hyperparameters, settings, _ = split_options(dict(engine.defaults) | options, program, engine, ())
    _refuse_unused_by_files(settings, name)
    if learned := to_learn(program, hyperparameters)[1]:
        raise ValueError(f"{learned[0]}='learned': none is learned of a scan; give a number, or {IN_MEMORY}")
    model = Model(program, hyperparameters | truth_prior)
    use_program_cache()
    rows = f"rows in partitions of {scan.partitions.engine}" if scan.partitions is not None else f"{scan.n_rows:,} rows"
    with doing(f"coding and sorting {rows}", show=progress):
        store = packed_by_its_engine(scan) if in_partitions else open_store(scan, keeping.folder)
    same = {option: same_fit.described(getattr(settings, option)) for option in engine.kept} | {"step": name}
    keep = NO_CHECKPOINTS
    if keeping.folder is not None:
        files = f"#{store.fingerprint}"
        keep = opened(keeping, same_fit.about_fit(model, files=files, seed=seed, method=method, options=same))
    source, dims = tried(model, store)
    model, key = with_numbers(model, source.like), key_of(seed)
    if isinstance(store, PackedStore):
        source = Partitioned(store, model)
    else:
        needed = partial(em.bytes_needed, model)
        n_rows = keep.found("rows")
        source = suited_files(model, store, scan.memory, needed, n_rows=n_rows, n_batches=engine.n_batches)
    refuse_whole_data(model, source, key)
    if isinstance(settings, SVISettings) and not svi.is_a_point(settings.guide):
        check_draws(model, source, settings.draws, scan.memory)
    keep.save("rows", lambda: source.plan.asked)  # of a batch, on which the rounding of sums depends
    with keep.guarded():
        outcome = engine.run(model, source, key, settings, progress=progress, keep=keep)
        keep.write()
    source.progress = progress
    kept = settings._asdict() | {"seed": seed, "backend": "numpyro", "step": step}
    fitted = Fitted(model, source, outcome, method, kept, dims)
    if method == "em" and step == EXACT:
        fitted = averaged_from_files(fitted)
    fitted = fitted.replace(stored_sums=fitted.label_sums)
    return fitted.replace(findings=look_at(fitted.in_memory or fitted))


def _refuse_unused_by_files(settings: EMSettings | SVISettings, step: str) -> None:
    """Refuse options that a fit to files would not use."""
    in_parts = bool(settings.sweeps)  # 0 is what such a fit has anyway
    if isinstance(settings, SVISettings):
        is_point = svi.is_a_point(settings.guide)
        unused = unused_by_svi(
            has_network=False, has_weights=False, is_point=is_point, holds_out=False, in_parts=in_parts
        )
    else:
        unused = unused_by_em(in_batches=step == STOCHASTIC, has_weights=False, holds_out=False, in_parts=in_parts)
    by_source = {name: reason for name in settings._fields if (reason := Files.refuses(name)) is not None}
    refuse_unused(settings, unused | by_source)


def _with_learned(model: Model, data: Annotations, dims: Dims, seed: int, names: tuple[str, ...]) -> Model:
    """Return the model with some hyperparameters learned from a fit by EM, without a network, on one device."""
    if jax.process_count() > 1:
        raise ValueError(f"{names[0]}='learned': several processes fit together; give a number")
    plain = {name: value for name, value in model.hyperparameters.items() if name != "truth_prior"}
    first = with_numbers(replace(model, hyperparameters=plain) if model.has_network else model, data)
    outcome = run_at_size(ENGINES["em"], first, data, dims, key_of(seed), EMSettings(), progress=False)
    found = learned_prior(Fitted(first, data, outcome, dims=dims), names)
    return replace(model, hyperparameters=dict(model.hyperparameters) | found)


def _checkpoints(
    keeping: CheckpointOptions,
    model: Model,
    data: Annotations,
    method: str,
    options: Mapping[str, Any],
    mesh: Mesh | None,
) -> Checkpoints:
    """The checkpoints of a fit of a model to the data."""
    if keeping.folder is None:
        return opened(keeping, {}, interrupts=True)
    if jax.process_count() > 1:
        raise ValueError("checkpoint=…: fits of several processes are not kept; leave it out")
    others = {name: value for name, value in options.items() if name not in ("seed", "backend")}
    about = same_fit.about_fit(
        model,
        libraries=same_fit.LIBRARIES + (("torch", "pyro-ppl") if options["backend"] == "pyro" else ()),
        data=same_fit.about_data(data),
        method=method,
        options={name: same_fit.described(value) for name, value in others.items()},
        devices=1 if mesh is None else mesh.size,
        seed=options["seed"],
        backend=options["backend"],
    )
    return opened(keeping, about, interrupts=keeping.whole is None)


def refit(fitted: Fitted, annotations: Annotations, method: str | None = None) -> Fitted:
    """Fit the same story to other annotations of the same tasks, with the same seed and options, without a look at it.

    Args:
        fitted: whose story, options and truth prior are used again.
        method: another engine's name, with its default options; None for the fit's own.

    Raises:
        UnknownNameError: there is no such engine.
        ValueError: the fit is one of Pyro's.
    """
    if _of_torch(fitted):
        raise ValueError(
            f"{fitted.story} was fitted by Pyro, and is not refitted here; compare fits that have draws by "
            "leave-one-out (method='svi' or 'nuts'), or fit with backend='numpyro'"
        )
    method = fitted.method if method is None else method
    engine = look_up("engine", method, ENGINES)
    settings = engine.settings(**(_own_settings(fitted, engine) if method == fitted.method else {}))
    same_run = {name: fitted.settings[name] for name in ("seed", "backend")}
    data = annotations.as_fitted()
    key = key_of(fitted.settings["seed"])
    outcome = run_at_size(engine, fitted.model, data, fitted.dims, key, settings, progress=False)
    return Fitted(fitted.model, annotations, outcome, method, settings._asdict() | same_run, fitted.dims)


def _own_settings(fitted: Fitted, engine: Engine) -> dict[str, Any]:
    """The engine's options of a fit, without those that are newer than it."""
    return {name: fitted.settings[name] for name in engine.settings._fields if name in fitted.settings}


def update(
    fitted: Fitted,
    more: Annotations | pd.DataFrame | None = None,
    *,
    gold: Gold = None,
    evidence: pd.DataFrame | np.ndarray | None = None,
    probabilities: Probabilities = None,
    progress: bool = True,
    found_families: bool = False,
    **by_worker: Any,
) -> Fitted:
    """Fit the same story to the annotations and more of them; arguments and errors are those of :meth:`.Fit.update`.

    Where ``found_families`` says that families of workers may have been found, and not given, a new worker is alone in
    theirs, with a warning.

    What is known of old tasks and workers is taken over. Of much data EM first goes over the tasks that have something
    new or were uncertain (:mod:`.sparse_em`), and then over everything, from where it needs few iterations. SVI and
    NUTS start from its solution and draw anew.
    """
    before = fitted.annotations
    if _of_torch(fitted):
        raise ValueError(
            f"{fitted.story} was fitted by Pyro, whose fits are not updated; fit everything anew by cp.fit"
        )
    engine, model = look_up("engine", fitted.method, ENGINES), _with_tables(fitted.model, by_worker)
    settings = engine.settings(**_own_settings(fitted, engine))
    if not engine.pads(settings) or model.has_network:
        raise ValueError(
            "a fit in minibatches, or with a network or a guide that is not mean field, is not updated; fit everything "
            "anew by cp.fit"
        )
    annotations = given = before.joined(more)
    if fitted.given_rows is not None:
        with warnings.catch_warnings(action="ignore"):  # said above
            given = fitted.given.joined(more)
    if (constant := left_out_before(fitted.findings, annotations)) is not None:
        annotations = annotations.rows(constant.others(annotations))
    annotations, counted = counted_before(annotations, fitted.findings, _with_gold(annotations, gold))
    model = _with_new_families(model, annotations, found=found_families)
    added = with_evidence(annotations.replace(evidence=None), gold, evidence).evidence
    if added is not None:
        annotations = annotations.replace(evidence=_both(annotations.evidence, added))
    annotations = with_probabilities(_with_gold(annotations, gold), probabilities)
    data = annotations.as_fitted()
    if any(np.ndim(value) for value in model.hyperparameters.values()):
        parameter_dims(model, data)  # a table that does not fit these data is refused before anything runs
    key = key_of(fitted.settings["seed"])
    here = {name: value.mean((0, 1)) for name, value in fitted.draws.items()} | dict(fitted.fixed)
    fresh = start_of(model, data, fitted.dims, key)
    start = {name: _taken_over(np.asarray(here[name]), np.asarray(value)) for name, value in fresh.items()}
    moving = sparse_em.moving_tasks(changed_tasks(fitted.data, data), fitted.posterior)
    if sparse_em.pays(data, moving):
        of_em = settings if isinstance(settings, EMSettings) else EMSettings()
        start = sparse_em.solution(model, data, moving, start, fitted.dims, key, of_em)
    outcome = run_at_size(engine, model, data, fitted.dims, key, settings, progress=progress, start=start)
    apart = {"constant_workers": constant, **counted}
    again = Fitted(model, annotations, outcome, fitted.method, fitted.settings, fitted.dims)
    return _looked_at(again.replace(given_rows=_given_rows(given, annotations)), apart)


def _given_rows(given: Annotations, counted: Annotations) -> dict[str, Any] | None:
    """Return the rows of annotations as they were given; None where each counts in the fit as it was given."""
    rows, of_fit = rows_of(given), rows_of(counted)
    return rows if any(of_fit[name] is not values for name, values in rows.items()) else None


def labels_by_one_coin(annotations: Annotations) -> np.ndarray:
    """Return label probabilities ``(N, K)`` where workers err independently and have one accuracy each."""
    return fit_story("one_coin", annotations.without_gold(), progress=False).posterior


def _with_tables(model: Model, given: Mapping[str, Any]) -> Model:
    """The model with some of its hyperparameters given anew, all of them tables."""
    known = [name for name, value in model.hyperparameters.items() if np.ndim(value)]
    for name in given:
        if name not in known:
            tables = f"tables of this fit: {', '.join(known)}" if known else "tables, and this fit has none"
            raise ValueError(
                f"{name}=… is not given anew by update, which goes on with the story's hyperparameters; those that "
                f"may be given, since they grow with workers or tasks, are {tables}; fit everything anew by cp.fit"
            )
    new = dict(given)
    if "worker_families" in new:
        new["worker_families"] = more_families(model.hyperparameters["worker_families"], new["worker_families"])
    return replace(model, hyperparameters=dict(model.hyperparameters) | new)


def _with_new_families(model: Model, annotations: Annotations, *, found: bool) -> Model:
    """Return the model whose new workers have families, each their own, with a warning, where families were found."""
    families = model.hyperparameters.get("worker_families")
    lacking = [] if families is None else without_family(families, annotations)
    if not lacking:
        return model
    if found:
        new = listing(lacking, 5, name_quoted)
        warn(f"new workers are each a family of their own: {new}; worker_families={{worker: family, …}} says another")
        return _with_tables(model, {"worker_families": {worker: alone(worker) for worker in lacking}})
    raise StoryError(
        f"worker_families does not name the worker {lacking[0]!r}; give each new worker a family by fit.update(more, "
        f"worker_families={{{lacking[0]!r}: …}})"
    )


def _both(known: np.ndarray | None, added: np.ndarray) -> np.ndarray:
    """The log-weights ``(N, K)`` of earlier evidence and of new; of a task whose gold label is another now, the new."""
    if known is None:
        return added
    total = np.asarray(known) + added
    return np.where(np.isneginf(total).all(-1, keepdims=True), added, total)


def _taken_over(old: np.ndarray, fresh: np.ndarray) -> jax.Array:
    """Fresh values with the old ones in the place of the first entries along each axis."""
    found = np.array(fresh)
    found[tuple(map(slice, old.shape))] = old
    return jnp.asarray(found)


def _looked_at(fitted: Fitted, known: Mapping[str, Any], *, is_whole: bool = True) -> Fitted:
    """Return the fit with its draws in one order, its posterior and modes, and the findings on it.

    Args:
        known: of workers whose annotations the fit does not have: who was left out or counts as one, if anybody.
        is_whole: whether one device had all tasks.
    """
    fitted = aligned(fitted)
    by_chain = label_posteriors(fitted)
    outcome, mean = fitted.outcome, by_chain.mean(0)
    facts = {**outcome.facts, "permuted": permutations(by_chain, fitted.annotations.votes())}
    facts |= {name: value for name, value in known.items() if value}
    posterior = mean / mean.sum(-1, keepdims=True)
    if is_whole and fitted.method == "em" and not _in_batches(fitted):
        averaged = averaged_labels(fitted, posterior)
        if averaged is not None:
            posterior, facts = averaged.posterior, facts | averaged.facts
    fitted = fitted.replace(
        outcome=outcome._replace(facts=facts, ends=(), modes=modes_of(fitted, by_chain)),
        stored_posterior=posterior,
    )
    return fitted.replace(findings=look_at(fitted))


def _in_batches(fitted: Fitted) -> bool:
    """Return whether a fit by EM was trained in minibatches."""
    return fitted.settings["batch_size"] is not None or fitted.model.has_network


def _with_gold(annotations: Annotations, gold: Gold) -> Annotations:
    """The annotations with the gold labels that were given, beside those that they carry: given ones come first."""
    if gold is None or isinstance(gold, bool):
        return annotations
    given = np.asarray(annotations.with_gold(gold).gold)
    carried = given if annotations.gold is None else np.asarray(annotations.gold)
    return annotations.replace(gold=np.where(given >= 0, given, carried))


def _of_torch(fitted: Fitted) -> bool:
    """Return whether a fit is of an engine of the torch room: all of Pyro's but EM without a torch module."""
    by_pyro = fitted.settings.get("backend") == "pyro"
    return by_pyro and (fitted.method != "em" or fitted.model.truth_prior.kind == "torch")


def _torch_backend() -> Any:
    """Return the module of engines that use PyTorch and Pyro."""
    try:
        from .torch import backend
    except ImportError as error:
        raise ImportError(
            f"backend='pyro' needs PyTorch and Pyro ({error}); install them with the extra: "
            "pip install 'crowdppl[pyro]', in a checkout pip install -e '.[pyro]'"
        ) from error
    return backend


ARGUMENTS = [name for name in inspect.signature(fit_story).parameters if name not in ("checkpoints", "options")]
ARGUMENTS += ["checkpoint", "every", "resume"]
"""Of :func:`crowdppl.fit`, which a misspelt option may be."""

OPTIONS_ELSEWHERE = {
    "lr": "learning_rate",
    "n_init": "restarts",
    "n_iter": "max_iterations",
    "n_restarts": "restarts",
    "num_chains": "chains",
    "num_particles": "particles",
    "num_samples": "draws",
    "num_steps": "max_iterations",
    "num_warmup": "warmup",
    "random_seed": "seed",
    "random_state": "seed",
    "rng_key": "seed",
    "step_size": "learning_rate",
    "steps": "max_iterations",
    "target_accept_prob": "target_accept",
    "tol": "tolerance",
    "tune": "warmup",
    "verbose": "progress",
    "warm_start": "warmup",
}
"""Names of options and arguments elsewhere: in NumPyro, PyMC, Optax, scikit-learn and crowd-kit."""


def split_options(
    options: Mapping[str, Any], story: Story, engine: Engine, of_torch: tuple[str, ...]
) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Sort options into the story's hyperparameters, the engine's settings and what is for PyTorch.

    Raises:
        UnknownNameError: an option is none of these.
        ValueError: an option belongs to another engine or backend, or its value is none that it takes.
    """
    known = set(hyperparameters_of(story)) - {"truth_prior"}
    hyperparameters: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for_torch: dict[str, Any] = {}
    for name, value in options.items():
        if name == "worker_families" and value is not None:
            hyperparameters[name] = families_frame(value)
        elif name in known:
            hyperparameters[name] = value
        elif name in engine.settings._fields or name in engine.refused:
            settings[name] = value
        elif name in of_torch:
            for_torch[name] = value
        elif takes_any(story):
            hyperparameters[name] = value
        elif others := [other.name for other in ENGINES.values() if name in other.settings._fields]:
            raise ValueError(
                f"{name}={value!r}: {name} belongs to {' and '.join(others)}, and method={engine.name!r}; leave it "
                f"out, or give method={' or '.join(map(repr, others))}"
            )
        elif name in (*OF_ANNOTATIONS, *inspect.signature(read).parameters):
            raise UnknownNameError(
                f"{name}={value!r} is of reading annotations, and no option of a fit: make them first, by "
                f"cp.read(source, {name}={value!r})"
            )
        else:
            there = sorted(known | set(engine.settings._fields) | set(of_torch))
            raise unknown_name("option", name, there, others=ARGUMENTS, meant=OPTIONS_ELSEWHERE.get(name))
    return hyperparameters, engine.checked(settings), for_torch
