"""``python -m include.cli``: the command line without the installed command."""

from include.cli import main

main()
