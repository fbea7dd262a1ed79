"""Ctrl-C, SIGTERM or a terminal that is closed: an answer within two seconds, whatever this
process waits for."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

GRACE_S = 1.0
CLOSES = (signal.SIGTERM, signal.SIGHUP)
SIGNALLED = 128
"""A shell's exit code of a process that a signal ended, without the number of the signal."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for all temporary files of this process meanwhile, so that it can end at once."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="tidebench-") as root:
        tempfile.tempdir = root
        try:
            yield Path(root)
        finally:
            tempfile.tempdir = before


def ends_at_once(sentence: str, scratch: Path | None = None) -> None:
    """On the first signal say the sentence, end all processes that this one started, and this one.

    Only for work that may be killed anywhere: files are whole or not there, and it goes on. The
    folder ``scratch`` is removed.
    """

    terminal = os.dup(2)  # while Spark starts, standard error is a pipe
    here = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        if os.getpid() != here:  # a child that was forked says nothing
            os._exit(SIGNALLED + number)
        _handle((signal.SIGINT, *CLOSES), signal.SIG_IGN)
        folders = [] if scratch is None else [scratch, Path(f"{scratch}-gone")]
        if folders:
            with suppress(OSError):  # first of all: threads that fill it find it no more, and end
                folders[0].rename(folders[1])
        _end_children()
        with suppress(OSError):  # it may be closed
            os.write(terminal, f"\n{sentence}\n".encode())
        for folder in folders:  # who had not ended yet may have made the first one anew
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(SIGNALLED + number)

    _handle((signal.SIGINT, *CLOSES), end)


def ends_as_by_ctrl_c() -> None:
    """SIGTERM, or closing the terminal, ends the command as Ctrl-C does: it releases what its runs
    hold first."""

    def end(number: int, frame: FrameType | None) -> None:
        _handle(CLOSES, signal.SIG_IGN)  # releasing takes some seconds
        raise KeyboardInterrupt

    _handle(CLOSES, end)


def _handle(numbers: Iterable[int], handler: Any) -> None:
    """Handle signals so, but for one that nobody sends: nohup has SIGHUP ignored."""
    for number in numbers:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _end_children() -> None:
    """Ask all processes that this one started to end, and kill those that have not by GRACE_S."""
    import psutil  # here, as few commands are interrupted and all would start later

    children = psutil.Process().children(recursive=True)
    for child in children:
        with suppress(psutil.NoSuchProcess):
            child.terminate()
    for child in psutil.wait_procs(children, timeout=GRACE_S)[1]:
        with suppress(psutil.NoSuchProcess):
            child.kill()
