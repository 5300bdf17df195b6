"""The engines: how a story's parameters are inferred.

An engine fits the parameters of any story, with its true labels summed out (:mod:`..densities`); it knows no story by
name. EM, SVI and NUTS are three engines for NumPyro programs, and :mod:`.pyro` has the same three for Pyro programs.

A new engine is a module that provides

- its options, a ``NamedTuple`` class with a default for each in :mod:`.settings`. Each option must change the fit:
  those that a fit would ignore are refused with :func:`.refuse_unused`, and the docstring says where an option is used;
- ``init(model, ..., key, settings)``, a pure function that returns an immutable state, and ``step(model, ..., state,
  ..., settings)``, a pure function that returns the next state, or ``advance`` for many steps in one compiled program.
  The state is all that a later step depends on, so that it can be saved and gone on from;
- ``run(model, annotations, key, settings, *, progress)``, which calls them and returns an :class:`.Outcome`: draws
  ``(chain, draw, ...)`` of each site with a posterior, values of the sites without one, the engine's history, its
  statistics by ArviZ's names, facts of its course, and whether the only draw is a point estimate. All
  randomness comes from ``key``, so that a seed gives a fit to the last bit.

It is registered as an :class:`.Engine` in :data:`.registry.ENGINES`. :func:`crowdppl.fit` then takes its name as
``method``, the command line lists its options, and the tests in ``tests/inference/engines/test_every_option.py`` ask
for a case for each option.
"""

from ...data.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
