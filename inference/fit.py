"""The front door: fit a story to annotations with an engine."""

import inspect
import warnings
from typing import TYPE_CHECKING, Any, Literal, overload

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from ..data import AnnotationError, Annotations, unknown_name
from ..models import Classifier, Given, Story, StoryError, TruthPrior, find_story
from ..models.parts.classifier import Network
from .densities.evidence import Gold, probabilities_of, with_evidence
from .densities.model import Model
from .densities.sites import parameter_dims
from .engines.alignment import aligned
from .engines.diagnostics import permuted_chains, sampling_warnings
from .engines.outcome import ConvergenceWarning
from .engines.registry import ENGINES, MAY_BE_ZERO, Engine
from .fitted.posterior import label_posteriors
from .results import Fit
from .storage.arviz_groups import parameter_dataset

if TYPE_CHECKING:
    from .comparison.stacking import Stack


BACKENDS = ("numpyro", "pyro")


@overload
def fit(story: Literal["auto"], annotations: Annotations, **options: Any) -> "Stack": ...  # type: ignore[overload-overlap]


@overload
def fit(
    story: str | Story,
    annotations: Annotations,
    *,
    method: str = "em",
    classifier: Network | Classifier | Any | None = None,
    truth_prior: TruthPrior | pd.DataFrame | np.ndarray | None = None,
    gold: Gold = None,
    evidence: pd.DataFrame | np.ndarray | None = None,
    seed: int = 0,
    backend: str = "numpyro",
    progress: bool = True,
    **options: Any,
) -> Fit: ...


def fit(
    story: str | Story,
    annotations: Annotations,
    *,
    method: str = "em",
    classifier: Network | Classifier | Any | None = None,
    truth_prior: TruthPrior | pd.DataFrame | np.ndarray | None = None,
    gold: Gold = None,
    evidence: pd.DataFrame | np.ndarray | None = None,
    seed: int = 0,
    backend: str = "numpyro",
    progress: bool = True,
    **options: Any,
) -> "Fit | Stack":
    """Fit a story to annotations: true labels, workers, and whatever else the story has, with their uncertainty.

    Args:
        story: a story's name (``"dawid_skene"``), or any function that keeps the contract of a story. ``"auto"`` fits
            a shelf of stories, compares them and averages their labels: :func:`.auto`.
        annotations: who labelled what.
        method: ``"em"`` (the mode, in a moment), ``"svi"`` (an approximate posterior, any size of data) or ``"nuts"``
            (draws from the posterior).
        classifier: a classifier of the tasks' features as prior of the true labels: ``"logistic"``, ``"mlp"``,
            ``"cnn"``, a Flax NNX module, a function from features to logits, or a :class:`.Classifier` with its
            options. With ``backend="pyro"`` a ``torch.nn.Module``, which is copied and trained in minibatches.
        truth_prior: another prior of the true labels: a :class:`.Prevalence`, or probabilities of the classes that are
            given, tasks × classes; the story's own by default.
        gold: labels that are known: True for those that the annotations carry, or label by task (mapping, series,
            frame). They are not used unless asked for here.
        evidence: probabilities of the classes from another model, tasks × classes.
        seed: the same seed gives the same result, to the last bit on one machine.
        backend: ``"numpyro"``; or ``"pyro"``, for a classifier that is a ``torch.nn.Module`` (the extra ``pyro``).
        progress: show progress bars on standard error.
        options: hyperparameters of the story (see its docstring) and options of the engine
            (:class:`~crowdppl.inference.engines.em.EMSettings`, :class:`~crowdppl.inference.engines.svi.SVISettings`,
            :class:`~crowdppl.inference.engines.nuts.NUTSSettings`), such as ``max_iterations``, ``tolerance``, ``draws``; with
            ``backend="pyro"`` also what of PyTorch is yours (:class:`~crowdppl.inference.engines.pyro.options.TorchOptions`).

    Raises:
        ImportError: ``backend="pyro"`` without the extra ``pyro``.
        UnknownNameError: for an unknown story, engine, backend or option, with the nearest name.
        AnnotationError: for gold labels, evidence or given probabilities that do not fit the annotations.
        ValueError: for an option of the engine that is not a number where one is needed, or both a classifier and a
            truth_prior.
        StoryError: for annotations, hyperparameters or a classifier that the story cannot be told with.
        FloatingPointError: where the log-posterior, or a classifier's logits, stop being finite, with the step.
    """
    if not isinstance(annotations, Annotations):
        raise AnnotationError(
            f"annotations are {type(annotations).__name__}; make them with cp.Annotations.from_frame(frame), "
            ".from_csv(path), .from_matrix(matrix), …"
        )
    if isinstance(story, str) and story == "auto":
        from .comparison.default_set import auto

        shared: dict[str, Any] = {
            "classifier": classifier,
            "truth_prior": truth_prior,
            "gold": gold,
            "evidence": evidence,
            "backend": backend,
        }
        return auto(annotations, method=method, seed=seed, progress=progress, **shared, **options)
    if method not in ENGINES:
        raise unknown_name("method", method, ENGINES)
    if backend not in BACKENDS:
        raise unknown_name("backend", backend, BACKENDS)
    engine = ENGINES[method]
    story = find_story(story)
    in_torch = _torch_backend() if backend == "pyro" else None
    of_torch = () if in_torch is None else in_torch.TorchOptions._fields
    hyperparameters, settings = _split({n: v for n, v in options.items() if n not in of_torch}, story, engine, of_torch)
    prior, annotations = _truth_prior(classifier, truth_prior, annotations, in_torch)
    model = Model(story, hyperparameters if prior is None else hyperparameters | {"truth_prior": prior})
    data = jax.tree.map(jnp.asarray, with_evidence(annotations, gold, evidence).replace(gold=None))
    if in_torch is not None:
        problem = in_torch.make(model, data, {name: options[name] for name in of_torch if name in options})
        model, data = problem.twin, problem.data
    try:
        dims = parameter_dims(model, data)  # a story that cannot be told of these data says so, before anything runs
    except StoryError as error:
        getattr(error, "__notes__", []).clear()  # what JAX has to say of its own frames
        raise

    if in_torch is None:
        outcome = engine.run(model, data, jax.random.key(seed), settings, progress=progress)
    else:
        outcome, data = in_torch.run(problem, method, settings, seed, progress=progress)
    outcome, not_aligned = aligned(model, data, outcome, dims)
    by_chain = np.asarray(label_posteriors(model, data, outcome.draws, outcome.fixed))
    found = [*outcome.warnings, *not_aligned, *permuted_chains(by_chain, annotations.classes)]
    if outcome.stats:
        parameters = parameter_dataset(outcome.draws, dims, annotations)
        found += sampling_warnings(parameters, outcome.stats, settings.max_tree_depth)
    for message in found:
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
    posterior = by_chain.mean(0)
    posterior = posterior / posterior.sum(-1, keepdims=True)
    return Fit(
        model=model,
        annotations=annotations.replace(
            evidence=None if data.evidence is None else np.asarray(data.evidence),
            prior=None if data.prior is None else np.asarray(data.prior),
        ),
        method=method,
        settings=settings._asdict() | {"seed": seed, "backend": backend},
        outcome=outcome._replace(warnings=tuple(found)),
        posterior=posterior,
        dims=dims,
    )


def _torch_backend() -> Any:
    """What does the work where the story is a Pyro program.

    Raises:
        ImportError: PyTorch or Pyro is not installed.
    """
    try:
        from .engines.pyro import engines
    except ImportError as error:
        raise ImportError(
            f"backend='pyro' needs PyTorch and Pyro ({error}); install them with the extra: "
            "pip install 'crowdppl[pyro]', in a checkout pip install -e '.[pyro]'"
        ) from error
    return engines


def _truth_prior(
    classifier: Network | Classifier | Any | None,
    truth_prior: TruthPrior | pd.DataFrame | np.ndarray | None,
    annotations: Annotations,
    in_torch: Any = None,
) -> tuple[TruthPrior | None, Annotations]:
    """The truth's prior as the story takes it, and the annotations with the probabilities that it may read there."""
    if classifier is not None:
        if truth_prior is not None:
            raise ValueError("give a classifier or a truth_prior, not both: a classifier is a prior of the truth")
        if in_torch is not None:
            return Given(by=classifier), annotations
        return classifier if isinstance(classifier, Classifier) else Classifier(classifier), annotations
    if isinstance(truth_prior, pd.DataFrame | np.ndarray | jax.Array):
        return Given(), annotations.replace(prior=probabilities_of(truth_prior, annotations, "truth_prior"))
    return truth_prior, annotations


def _split(
    options: dict[str, Any], story: Story, engine: Engine, of_torch: tuple[str, ...] = ()
) -> tuple[dict[str, Any], Any]:
    """Sort options into the story's hyperparameters and the engine's settings."""
    parameters = list(inspect.signature(story).parameters.values())[1:]
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    known = {p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD} - {"truth_prior"}
    hyperparameters, settings = {}, {}
    for name, value in options.items():
        if name in known:
            hyperparameters[name] = value
        elif name in engine.settings._fields:
            settings[name] = _checked(name, value, engine.settings._field_defaults[name])
        elif takes_any:
            hyperparameters[name] = value
        else:
            raise unknown_name("option", name, sorted(known | set(engine.settings._fields) | set(of_torch)))
    return hyperparameters, engine.settings(**settings)


def _checked(name: str, value: Any, default: Any) -> Any:
    """An engine's setting, which is a number where its default is one."""
    least = 0 if name in MAY_BE_ZERO else 1
    if isinstance(default, int) and not (isinstance(value, int | np.integer) and value >= least):
        raise ValueError(f"{name}={value!r}: a whole number from {least} is needed")
    if isinstance(default, float) and not (isinstance(value, int | float | np.number) and 0 <= value < np.inf):
        raise ValueError(f"{name}={value!r}: a finite number from 0 is needed")
    return value
