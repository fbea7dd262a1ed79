"""``python -m include.testbeds.live.operators [FILE]``: the instance that a file describes."""

from __future__ import annotations

import sys
from pathlib import Path

from include.testbeds.live.operators.instance import Instance
from include.testbeds.live.operators.logs import Log
from include.testbeds.live.operators.settings import FILE, Settings


def main(path: Path) -> None:
    """Run one instance in this process until SIGTERM or SIGINT; exit code 1 without settings."""
    try:
        settings = Settings.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"no settings in {path} ({error}); start the instance by its testbed")
    log = Log(run=settings.run, operator=settings.operator, instance=settings.instance)
    instance = Instance(settings, log)
    log("started", prefetch=settings.prefetch, targets=len(settings.targets))
    instance.run()
    log("stopped", processed_items=instance.processed)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
