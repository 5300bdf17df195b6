"""Calls of the command line in the tests' own process."""

import re

from typer.testing import CliRunner

from crowdppl import cli


def crowdppl(*arguments, width=200):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments], env={"COLUMNS": str(width)})


def refused(*arguments):
    """Return the message of a command that is refused with status 2, as one line without the panel."""
    done = crowdppl(*arguments)
    assert done.exit_code == 2, done.output
    assert "Traceback" not in done.output
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.stderr).split())
