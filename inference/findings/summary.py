"""A fit in a few lines: what was fitted, whether to trust it, what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from ...data import AnnotationError, Annotations
from ...data.cards import sheet
from ...data.description import count_text
from ...data.id_text import listing, name_text
from ...data.question_classes import within
from ...data.questions import Units, tasks_of, tasks_text, workers_noun
from ...models.parts.classifier import PREFIX, Classifier
from ...models.parts.shared_error import LEVELS, STRENGTH, USUAL_RIGHT, prior_share
from ...models.parts.task_difficulty import LEVELS as DIFFICULTIES
from ...models.parts.task_difficulty import SHARE, prior_mean
from ..densities.model import Model
from ..engines.finding import sentences
from ..fitted.alignment import PERMUTED
from ..fitted.by_rule import ByRule
from ..fitted.counted_as_one import groups_text
from ..fitted.error_correlation import error_correlation
from ..fitted.fitted import Fitted
from ..fitted.given_models import models_text
from ..fitted.groups import weights_prior
from ..fitted.intervals import INTERVAL
from ..fitted.item_ranking import item_ranking, ranks_items, takes_as_given
from ..fitted.misled import misled_share
from ..fitted.posterior import SHOWN_WEIGHT, Posterior, interval_around
from ..fitted.question_frame import ClassRows, class_rows, question_frame
from ..fitted.workers import fitted_scores
from ..sources.on_disk import Files
from .facts import SURE, beside_votes, n_sure, sure_of_what
from .gold_share import gold_accuracy
from .look import findings
from .of_draws import smallest_ess, worst_rhat
from .of_modes import modes_text
from .of_prior import worker_prior
from .register import Findings
from .review import reviewed

IN_TABLES: Any = {"float_format": "{:.3f}".format, "na_rep": "–"}
SHOWN_WORKERS = 5
SHOWN_ITEMS = 10  # of those that were compared, the best ones
SHOWN_QUESTIONS = 30  # of several questions
SHOWN_ROWS = 40  # of the classes of several questions
SHOWN = 9  # numbers of a hyperparameter, of larger ones the shape is; families of workers


DECISIVE = {"no_agreement": "use none of these labels without gold labels: workers agree no more than by chance"}
"""First line of a summary by the code of a finding that makes a fit useless."""

NOTHING = Findings()


@dataclass(frozen=True)
class Summary:
    """Sections of text and tables; prints as text, shows as HTML in notebooks."""

    title: str
    facts: dict[str, str]
    tables: dict[str, pd.DataFrame]
    findings: Findings = NOTHING

    @property
    def headline(self) -> str:
        """The title, and what makes the fit of no use."""
        codes = {each.code for each in self.findings if each.severity == "warning"}
        return "; ".join([self.title, *(said for code, said in DECISIVE.items() if code in codes)])

    def __str__(self) -> str:
        width = max(map(len, self.facts))
        lines = [self.headline, "", *(f"{name:<{width}}  {text}" for name, text in self.facts.items())]
        for name, table in self.tables.items():
            lines += ["", name, table.to_string(**IN_TABLES)]
        return "\n".join([*lines, *(f"\nWarning: {text}" for text in sentences(self.findings))])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        tables = {name: Markup(table.to_html(**IN_TABLES)) for name, table in self.tables.items()}
        return sheet(self.headline, self.facts, tables, sentences(self.findings))


def summary(fit: Posterior, interval: float = INTERVAL) -> Summary:
    """Return a summary: data, story or rule, engine and results; prints as text, shows as a table in notebooks.

    Of an average it has the averaged fits, their weights, and the reason.

    Args:
        interval: mass of the intervals of the tables, between 0 and 1.
    """
    if fit.rule is not None:
        return _of_rule(fit, fit.rule, interval)
    if fit.only is None:
        return _of_average(fit, interval)
    return summarise(fit.only, interval) if fit.only.files is None else _of_files(fit.only, fit.only.files, interval)


def summarise(fitted: Fitted, interval: float) -> Summary:
    """Put a fit into a few lines."""
    annotations = fitted.annotations
    facts = {
        "data": sizes(fitted.given),
        "hyperparameters": options_text(fitted.model),
        **prior_fact(fitted),
        **groups_fact(fitted),
        "engine": _engine(fitted),
        "labels": certainty(fitted) + differing(fitted),
    }
    if PERMUTED in fitted.origin:
        facts["permuted"] = f"{fitted.origin[PERMUTED]}, brought to the names of the others: the density is the same"
    if modes := modes_text(fitted.outcome.modes):
        facts["modes"] = modes
    facts |= shared_errors(fitted) | difficulties(fitted)
    facts |= copies_fact(fitted) | panel(fitted)
    if len(annotations.models):
        facts["models"] = models_text(fitted)
    if (classifier := fitted.model.classifier) is not None:
        facts["classifier"] = _classifier(fitted, classifier)
    measured, tables = _measured(fitted, interval)
    title = f"{fitted.story} fitted by {fitted.method.upper()}"
    return Summary(title, facts | measured, tables, findings(fitted))


def _measured(fit: Posterior | Fitted, interval: float) -> tuple[dict[str, str], dict[str, pd.DataFrame]]:
    """The facts on gold labels and workers, and the tables of classes, workers and items, of what has them.

    Whose preferences are taken as they were given is right in all of them, so that workers have no table.
    """
    annotations = fit.annotations
    facts = {} if annotations.gold is None else {"gold": gold_accuracy(fit)}
    tables, posterior = by_question_and_class(fit, interval), Posterior.of(fit)
    if annotations.named and not (annotations.preferences and takes_as_given(posterior)):
        tables |= best_and_worst(fitted_scores(fit, interval))
        facts |= positive_class(annotations.classes) | to_review(fit)
    return facts, tables | ranking(posterior, interval)


def _of_files(fitted: Fitted, files: Files, interval: float) -> Summary:
    """The labels' certainty and the workers' scores take passes over the data."""
    brief = in_brief(fitted, files)
    facts = brief.facts | {
        "labels": _certainty(files.n_tasks, int(fitted.label_sums.sure), files),
        **shared_errors(fitted),
        **difficulties(fitted),
    }
    tables = {"classes": class_frame(fitted)}
    if files.named:
        tables |= best_and_worst(fitted_scores(fitted, interval))
        facts |= positive_class(files.classes)
    return replace(brief, facts=facts, tables=tables)


def in_brief(fitted: Fitted, files: Files) -> Summary:
    """Return of the summary of a fit of files what takes no pass over the data."""
    facts = {
        "data": f"{sizes(files)}, in {count_text(files.n_batches, 'chunk')}",
        "hyperparameters": options_text(fitted.model),
        "engine": _engine(fitted),
        "labels": "fit.write_labels(folder), fit.iter_labels()",
    }
    return Summary(f"{fitted.story} fitted by {fitted.method.upper()}, streaming", facts, {}, findings(fitted))


def _of_average(fit: Posterior, interval: float) -> Summary:
    facts = {"data": sizes(fit.given), "labels": certainty(fit) + differing(fit)}
    tables = {"weights": fit.weights.to_frame()}
    if len(fit.weighty) == 1:
        facts |= shared_errors(fit.weighty[0][0])
    facts |= copies_fact(fit) | panel(fit)
    if fit.power is not None:
        facts["power"] = f"the label probabilities of each story and of the votes to the power {fit.power:.2f}, by gold"
    if fit.votes:
        facts["votes"] = (
            f"their share of the label probabilities is {fit.mean_votes:.0%} in the mean, beside the stories'"
        )
    if fit.misled != 0:
        each = [misled_share(fitted, fit.misled) for fitted, _ in fit.weighty]
        mean = np.average([of.mean for of in each], weights=[weight for _, weight in fit.weighty])
        facts["misled"] = f"the label probabilities allow for {mean:.1%} of tasks that mislead the whole crowd"
        if (doubt := each[0].nobody_looked) >= 0.005:
            facts["misled"] += f", and by {doubt:.0%} for workers who looked at no task"
    if fit.comparison is not None:
        facts["why"] = why(fit.comparison)
        if how := fit.comparison.attrs.get("how"):
            facts["compared by"] = str(how)
        tables = {"comparison": fit.comparison}
    if fit.left_out:
        facts["left out"] = "; ".join(f"{name}: {reason}" for name, reason in fit.left_out.items())
    measured, shown = _measured(fit, interval)
    methods = " and ".join(sorted({fitted.method.upper() for fitted in fit.members.values()}))
    many = "1 story" if len(fit.members) == 1 else f"{len(fit.members)} stories"
    return Summary(f"{many} fitted by {methods} and averaged", facts | measured, tables | shown, findings(fit))


def _of_rule(fit: Posterior, rule: ByRule, interval: float) -> Summary:
    facts = {"data": sizes(fit.given), "labels": certainty(fit)}
    if rule.classifier is not None:
        n_weights = sum(np.size(value) for value in rule.weights.values())
        options = ", ".join(f"{name}={value!r}" for name, value in rule.settings.items())
        facts["classifier"] = f"{rule.classifier!r}, {count_text(n_weights, 'weight')}, {options}"
    measured, tables = _measured(fit, interval)
    return Summary(f"{rule.name}, without a likelihood", facts | measured, tables, findings(fit))


def why(comparison: pd.DataFrame) -> str:
    """A sentence on the story that a comparison puts first, those near it, and the stacking weights.

    Args:
        comparison: as :func:`.compare` returns it.
    """
    best, *others = comparison.index
    text = f"{best} predicts held-out annotations best"
    near = [str(o) for o in others if -comparison.loc[o, "difference"] <= comparison.loc[o, "difference_se"]]
    if near:
        text += f"; within one standard error of it: {', '.join(near)}"
    weights = comparison["weight"][comparison["weight"] > SHOWN_WEIGHT].sort_values(ascending=False)
    return f"{text}; stacking weights: {', '.join(f'{weight:.0%} {name}' for name, weight in weights.items())}"


def best_and_worst(scores: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The workers' scores by accuracy: of all of them, or of the best five and the worst five of many.

    The best are those with the highest lower bounds of accuracy, and the worst those with the lowest upper bounds, so
    that nobody is among them for a few annotations.
    """
    low, high = (name if name in scores else "accuracy" for name in ("accuracy_low", "accuracy_high"))
    best = scores.sort_values(low, ascending=False)
    if len(scores) <= 10:
        return {"workers": best}
    worst = scores.drop(best.index[:5]).sort_values(high, ascending=False).tail(5)
    bounds = (" by the lower bound of accuracy", " by its upper bound") if low == "accuracy_low" else ("", "")
    everyone = count_text(len(scores), workers_noun(scores.index))
    return {f"the best five of {everyone}{bounds[0]}": best.head(5), f"the worst five{bounds[1]}": worst}


def ranking(fit: Posterior, interval: float) -> dict[str, pd.DataFrame]:
    """The ranking of what was compared, of many items the best ten; empty where the fit gives no scores."""
    if not ranks_items(fit):
        return {}
    items = item_ranking(fit, interval)
    within = f", within {items['part'].max():,} parts that no comparison joins" if "part" in items else ""
    many = len(items) > SHOWN_ITEMS
    title = f"the {'first' if within else 'best'} {SHOWN_ITEMS} of {len(items):,} items" if many else "ranking"
    return {f"{title}{within}": items.head(SHOWN_ITEMS)}


def positive_class(classes: Sequence[object]) -> dict[str, str]:
    """Of which class the workers' sensitivity is, and of which their specificity; empty where there are not two."""
    if len(classes) != 2:
        return {}
    negative, positive = classes
    return {
        "positive class": f"{positive}, the second of the classes: sensitivity is P(annotation {positive} | truth "
        f"{positive}), specificity is P(annotation {negative} | truth {negative})"
    }


def options_text(model: Model) -> str:
    """The hyperparameters that were given, in words."""
    return ", ".join(f"{name}={_brief(value)}" for name, value in model.hyperparameters.items()) or "defaults"


def _brief(value: Any) -> str:
    """A hyperparameter in a line: of a table its size, of a table of families how many there are."""
    if isinstance(value, pd.DataFrame) and "family" in value:
        n_families = value["family"].nunique()
        return f"{n_families:,} {'family' if n_families == 1 else 'families'} of {count_text(len(value), 'worker')}"
    if isinstance(value, pd.DataFrame) or (np.ndim(value) and np.size(value) > SHOWN):
        return f"a table of shape {np.shape(value)}"
    return repr(value)


def course(method: str, history: np.ndarray, n_draws: int, seed: int) -> str:
    """Return the length and the end of EM's or SVI's run, in words."""
    if method == "em":
        return f"{len(history) - 1} iterations, log-posterior {history[-1]:,.3f}, seed {seed}"
    return f"{len(history):,} steps, last loss {history[-1]:,.2f}, {n_draws:,} draws, seed {seed}"


def prior_fact(fitted: Fitted) -> dict[str, str]:
    """Return the weight and the expected accuracy of the workers' prior, in words; empty where no worker is named."""
    prior = worker_prior(fitted)
    return {} if prior is None else {"prior": prior.text(fitted.annotations)}


def groups_fact(fitted: Fitted) -> dict[str, str]:
    """The prior of the weights of groups, in words; empty where there are none."""
    prior = weights_prior(fitted)
    return {} if prior is None else {"prior of groups": prior}


def sizes(annotations: Annotations | Files) -> str:
    """Return the numbers of tasks, workers, classes and annotations, in words."""
    tasks, workers = count_text(annotations.n_tasks, "task"), count_text(annotations.n_workers, "worker")
    if isinstance(annotations, Annotations):
        tasks, workers = tasks_text(annotations.tasks), count_text(len(tasks_of(annotations.workers)), "worker")
        workers += " with a quality on each question" if isinstance(annotations.workers, Units) else ""
    classes, given = f"{annotations.n_classes:,} classes", count_text(annotations.n_annotations, "annotation")
    if isinstance(annotations, Annotations) and annotations.kind.by_question:
        of = sorted({len(annotations.question_classes(name)[0]) for name in annotations.questions})
        classes = f"{' to '.join(f'{n:,}' for n in dict.fromkeys([of[0], of[-1]]))} classes a question"
    if isinstance(annotations, Annotations) and annotations.abstains:
        n = int(annotations.counts_by_kind()[:, annotations.n_classes :].sum())
        given += f" ({n / max(annotations.n_annotations, 1):.0%} of them abstentions)"
    return f"{tasks}, {workers}, {classes}, {given}"


def shared_errors(fitted: Fitted) -> dict[str, str]:
    """Return the share of annotations that follow a common impression, in words; empty without shared errors."""
    model = fitted.model
    if STRENGTH not in fitted.draws or not model.hyperparameters.get("shared_error"):
        return {}
    parameters = fitted.parameters
    strength = parameters[STRENGTH].transpose("family", "level")
    followed = strength.to_numpy() @ LEVELS
    of_families = [f"{share:.0%} of {name}" for name, share in zip(strength["family"].values, followed, strict=True)]
    said = f"{listing(of_families, SHOWN, str, of='families')}: shares of annotations that follow"
    if len(followed) == 1:
        said = f"{followed[0]:.0%} of the annotations follow"
    expected = f"the prior expects {prior_share(model.hyperparameters):.0%}"
    wrong = 1 - np.diagonal(parameters["pull"].to_numpy()).mean()
    of_impressions = (
        f"An impression is wrong in {wrong:.0%} of the tasks of a class (the prior expects {1 - USUAL_RIGHT:.0%}, and "
        "hardly anything but gold labels tells otherwise): the accuracies of all workers have that in them"
    )
    return {"shared errors": f"{said} a common impression of their task, right or wrong ({expected}). {of_impressions}"}


def copies_fact(source: Posterior | Fitted) -> dict[str, str]:
    """The workers who counted as one, in words; empty where nobody did."""
    said = groups_text(source)
    return {"copies": said} if said else {}


def panel(source: Posterior | Fitted) -> dict[str, str]:
    """Like how many independent workers all of them count, in words; empty where nothing says so.

    What is counted is a mean over all pairs of workers, by labels that copies may have decided: where a
    finding names copies, it says so.
    """
    try:
        said = str(error_correlation(source))
    except AnnotationError:  # workers without names, or who are never on one task
        return {}
    fewer = (
        ". They are fewer if those whom a warning names are copies"
        if any(each.code == "copies" and "as_one" not in each.values for each in findings(source).warnings)
        else ""
    )
    return {"independence": f"{said}{fewer}"}


def difficulties(fitted: Fitted) -> dict[str, str]:
    """Return the difficulty of tasks, in words; empty where the story has none."""
    model = fitted.model
    if SHARE not in fitted.draws or not model.hyperparameters.get("task_difficulty"):
        return {}
    share = fitted.parameters[SHARE].to_numpy()
    weight = {name: model.hyperparameters[name] for name in ("difficulty_weight",) if name in model.hyperparameters}
    return {
        "difficulties": f"{1 - share[0]:.0%} of the tasks are difficult; log-odds of annotations are "
        f"{share @ DIFFICULTIES:.0%} smaller in the mean of all tasks (the prior expects {prior_mean(**weight):.0%})"
    }


def _engine(fitted: Fitted) -> str:
    seed = fitted.settings["seed"]
    n_chains, n_draws = fitted.shape
    if fitted.method in ("em", "svi"):
        return course(fitted.method, fitted.outcome.history, n_draws, seed)
    rhat, ess = worst_rhat(fitted.named_draws), smallest_ess(fitted.named_draws)
    divergences = count_text(int(fitted.outcome.stats["diverging"].sum()), "divergence")
    return (
        f"{n_chains} chains × {n_draws:,} draws, {divergences}, "
        f"R̂ up to {rhat[0]:.3f} ({rhat[1]}), effective sample size at least {ess[0]:,.0f} ({ess[1]}), seed {seed}"
    )


def _classifier(fitted: Fitted, classifier: Classifier) -> str:
    """Return the classifier's name and the treatment of its weights: optimised, frozen, or with a posterior."""
    network = classifier.network
    name = network if isinstance(network, str) else getattr(network, "__name__", type(network).__name__)
    sampled = {site: draws[0, 0].size for site, draws in fitted.draws.items() if site.startswith(PREFIX)}
    if sampled:
        by = {"em": "at their mode", "svi": "with an approximate posterior", "nuts": "with draws of their posterior"}
        prior = f"normal prior of standard deviation {classifier.prior:g}"
        return f"{name}, Bayesian: {sum(sampled.values()):,} weights {by[fitted.method]}, {prior}"
    if not fitted.fixed:
        return f"{name}, without weights"
    by = {
        "em": "optimised",
        "svi": "optimised with the bound",
        "nuts": "frozen at EM's solution; a prior= samples them",
    }
    return f"{name}: weights {by[fitted.method]}"


def certainty(fitted: Posterior | Fitted) -> str:
    """Return the number of labels that are sure, of a probability of at least :data:`.facts.SURE`, in words."""
    return _certainty(len(fitted.posterior), n_sure(fitted), fitted.annotations)


def _certainty(n: int, sure: int, annotations: Annotations | Files) -> str:
    what = sure_of_what(annotations)
    if n == 1:
        return f"the only label has probability {'≥' if sure else '<'} {SURE}{what}"
    which = f"all {n:,}" if sure == n else f"{sure:,} of {n:,}"
    return f"{which} labels have probability ≥ {SURE}{what}"


def differing(fitted: Posterior | Fitted) -> str:
    """On how many tasks the label is another than the majority vote, in words that follow others; ties do not count."""
    votes = beside_votes(fitted)
    ties = f", and is a tie on {n_ties:,}" if (n_ties := int(votes.tied.sum())) else ""
    return f"; the majority vote differs on {int(votes.differs.sum()):,}{ties}"


def to_review(of: Posterior | Fitted) -> dict[str, str]:
    """The workers to review, those with the most annotations first; empty where none is."""
    names = reviewed(of).index
    if not len(names):
        return {}
    who = count_text(len(names), workers_noun(names))
    return {"review": f"{who}: {listing(names.tolist(), SHOWN_WORKERS, name_text)}"}


def class_frame(fit: Posterior | Fitted, interval: float = INTERVAL) -> pd.DataFrame:
    """By class, or by question and class, its mean probability over the tasks, and of stories its prevalence, too.

    The interval of the prevalence is of one story: it holds as far as the story does. Of an average the prevalence is
    the mean of the stories' shares of the class, by weight. The votes' share, and that of misled tasks, allow for
    doubt of each label, and are as much for a rare class as for others, whose tasks are many more: of labels of which
    2 % are of a class they would make a tenth.
    """
    source = fit.source
    if not isinstance(source, Annotations):
        return pd.DataFrame({"mean_probability": fit.class_shares}, index=source.classes.to_index("class"))
    rows = class_rows(source)
    frame = pd.DataFrame({"mean_probability": rows.shares(fit.posterior)}, rows.names)
    if not isinstance(fit, Fitted):
        return frame.assign(prevalence=rows.shares(fit.allowing_for(0.0).posterior)) if fit.is_average else frame
    known, drawn = (each.draws_of("prevalence") for each in (fit, fit.with_uncertainty))
    if known is not None and drawn is not None:
        frame["prevalence"] = estimate = _of_rows(source, rows, known).mean((0, 1))
        frame["low"], frame["high"] = interval_around(fit, estimate, _of_rows(source, rows, drawn), interval)
    return frame


def _of_rows(annotations: Annotations, rows: ClassRows, values: np.ndarray) -> np.ndarray:
    """Shares of the classes in each draw, ``(chain, draw, K)`` or by question ``(chain, draw, Q, K)``, as R rows."""
    if not (asked := len(annotations.questions)):
        return values[:, :, rows.of_class]
    each = values if values.ndim == 4 else np.repeat(values[:, :, None], asked, axis=2)
    return within(each, annotations.kind, np.arange(asked))[:, :, rows.question, rows.of_class]


def by_question_and_class(fit: Posterior | Fitted, interval: float) -> dict[str, pd.DataFrame]:
    """Tables of the questions, where there are several, and of the classes; of very many rows the first are shown."""
    frame = class_frame(fit, interval)
    if frame.index.nlevels == 1:
        return {"classes": frame}
    questions = question_frame(Posterior.of(fit) if isinstance(fit, Fitted) else fit)
    n = len(questions)
    if n > SHOWN_QUESTIONS:
        most = questions.sort_values("doubtful", ascending=False, kind="stable").head(SHOWN_QUESTIONS)
        tables = {f"the {SHOWN_QUESTIONS} of {n:,} questions with the most doubtful labels": most}
    else:
        tables = {"questions": questions}
    ends = frame.groupby(level=0, sort=False).size().cumsum()
    shown = max(int((ends <= SHOWN_ROWS).sum()), 1)
    title = "classes" if shown == n else f"classes of the first {shown:,} of {n:,} questions"
    return tables | {title: frame.head(int(ends.iloc[shown - 1]))}
