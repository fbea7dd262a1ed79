"""The data provider: sends the items of a plan, from the position in Redis on."""

from __future__ import annotations

import sys
from pathlib import Path

from include.testbeds.live.operators.ledger import redis_client
from include.testbeds.live.operators.logs import Log
from include.testbeds.live.provider.plan import ProviderPlan
from include.testbeds.live.provider.position import Positions
from include.testbeds.live.provider.publisher import Publisher
from include.testbeds.live.services import Services


def main(path: Path) -> int:
    """Returns 0 if everything is sent or after SIGTERM, 1 if the plan is gone or time is up."""
    plan = ProviderPlan.read(path)
    log, services = Log(run=plan.run), Services.find()
    positions = Positions(redis_client(services.redis_url(plan.run)), plan, log)
    log("started", items=positions.confirmed())
    if not Publisher(services.amqp_url(plan.run), path, plan, positions, log).run():
        log("given up")
        return 1
    positions.finish()
    log("ended", items=positions.confirmed())
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
