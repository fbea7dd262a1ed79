"""The command line in this process: what it says when all goes well, and why it refuses."""

from __future__ import annotations

from typer.testing import CliRunner

from include.cli import app
from include.model.errors import TidebenchError


def said(*arguments: object) -> str:
    """What `tidebench` prints with these arguments; fails with it when it does not succeed."""
    done = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def refused(*arguments: object) -> str:
    """The message with which `tidebench` refuses these arguments."""
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert isinstance(done.exception, TidebenchError), done.output
    return str(done.exception)
