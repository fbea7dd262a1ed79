"""``python -m include.testbeds.live.operators``: the instance that the environment describes."""

from __future__ import annotations

import logging
import os
import sys

from include.testbeds.live.operators.consumer import work
from include.testbeds.live.operators.logs import Log
from include.testbeds.live.operators.settings import read_settings


def main() -> int:
    """Returns 2 for an environment that cannot be used, 0 after an orderly stop."""
    # pika logs every failed attempt with its stack; what matters is in our own lines.
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    try:
        settings = read_settings(os.environ)
    except ValueError as error:
        Log()("unusable environment", why=str(error))
        return 2
    work(settings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
