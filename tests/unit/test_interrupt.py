"""SIGTERM, which a service manager or `kill` sends, ends a command as Ctrl-C does."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import os, signal
from include.cli.interrupt import ends_as_by_ctrl_c

ends_as_by_ctrl_c()
try:
    os.kill(os.getpid(), signal.SIGTERM)
except KeyboardInterrupt:
    os.kill(os.getpid(), signal.SIGTERM)  # a second one does not end the release
    print("released")
"""


def test_what_a_run_holds_is_released_at_sigterm() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "released\n"), done.stderr
