"""A fork of this process that dies in the middle of its work: nothing has to be imported anew."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable

MOST_S = 300
"""Then a fork that hangs is ended: it has locks of threads that are not in it."""


def killed(work: Callable[[], object], at: int, within: str) -> bool:
    """Have a fork do the work, with SIGKILL just before the ``at``-th time that a file is put in
    its place or a folder removed whose path has ``within`` in it. Whether it came to that.
    """
    child = os.fork()
    if not child:
        left = at

        def count(event: str, arguments: object) -> None:
            nonlocal left
            if event in ("os.rename", "shutil.rmtree") and within in str(arguments):
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            signal.alarm(MOST_S)
            sys.addaudithook(count)
            work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
