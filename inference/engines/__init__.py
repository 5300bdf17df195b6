"""The engines: how a story's parameters are inferred.

An engine fits the parameters of any story, with its true labels summed out (:mod:`..densities`); it knows no story by
name. EM, SVI and NUTS are three; :mod:`crowdppl.inference.torch` has the three of PyTorch and Pyro.

What each promises is in ``docs/contracts.md``, and how to add one in ``CONTRIBUTING.md``.
"""

from ...data.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
