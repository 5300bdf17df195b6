"""The command line: the command ``crowdppl`` and its subcommands."""

from .commands import app

__all__ = ["app"]
