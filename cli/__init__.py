"""The command ``crowdppl``."""

from .commands import app

__all__ = ["app"]
