"""Settings of the tests of what comes in."""

from hypothesis import settings

# How long an example takes says more about the machine (a first import, a busy core) than about the code.
settings.register_profile("no_deadline", settings(), deadline=None)
settings.load_profile("no_deadline")
