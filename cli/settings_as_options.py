"""Hyperparameters and options of engines that are given as options of their own: said how ``--set`` takes them."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from typer.core import TyperCommand

from ..data.errors import nearest


class CommandWithSettings(TyperCommand):
    """A command with ``--set``, which is named where there is no option that was given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, or fail with the options that may be meant."""
        known = {name for parameter in self.get_params(ctx) for name in (*parameter.opts, *parameter.secondary_opts)}
        options = args[: args.index("--")] if "--" in args else args
        for argument, after in zip_longest(options, options[1:], fillvalue=""):
            option, equals, value = argument.partition("=")
            if not option.startswith("--") or option in known:
                continue
            if not equals:  # a value of its own comes next, or none does
                value = after if after and not after.startswith("-") else "true"
            near = nearest(option, known)
            name = option.removeprefix("--").replace("-", "_")
            ctx.fail(
                f"No such option: {option}{f'; did you mean {near}?' if near else '.'} A hyperparameter of the story "
                f"or an option of the engine is given by --set {name}={value}"
            )
        return super().parse_args(ctx, args)
