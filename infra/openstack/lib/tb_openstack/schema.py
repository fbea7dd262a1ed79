"""The schema of a service's database: python -m tb_openstack.schema SERVICE CONFIG...

The code that its manage command runs, all in one process: importing Nova five times would take
longer than making its tables.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

# The cells refer to nova.conf for whatever may be different next time.
CELL0_DATABASE = "{scheme}://{username}:{password}@{hostname}/nova_cell0?{query}"
CELL1_DATABASE = "{scheme}://{username}:{password}@{hostname}/{path}?{query}"
CELL1_BROKER = "{scheme}://{username}:{password}@{hostname}:{port}/"


def run(main: Callable[[], Any], *arguments: str) -> None:
    """A manage command; exits when it fails."""
    sys.argv = list(arguments)
    if code := main():
        sys.exit(code)


def keystone(*config: str) -> None:
    """Tables, and the administrator with the first endpoint."""
    from keystone.cmd import bootstrap, manage

    run(manage.main, "keystone-manage", *config, "db_sync")
    first = bootstrap.Bootstrapper()
    first.admin_username = first.project_name = first.admin_role_name = "admin"
    first.admin_password = os.environ["TB_PASSWORD"]
    first.service_name, first.region_id = "keystone", "RegionOne"
    first.public_url = os.environ["TB_AUTH_URL"]
    first.bootstrap()


def placement(*config: str) -> None:
    """Tables."""
    from placement.cmd import manage

    run(manage.main, "placement-manage", *config, "db", "sync")


def glance(*config: str) -> None:
    """Tables."""
    from glance.cmd import manage

    run(manage.main, "glance-manage", *config, "db_sync")


def neutron(*config: str) -> None:
    """Tables."""
    from neutron.db.migration import cli

    run(cli.main, "neutron-db-manage", *config, "upgrade", "heads")


def nova(*config: str) -> None:
    """Tables of the API and of both cells."""
    from nova.cmd import manage  # isort: skip  before anything else of nova: it patches
    from nova import config as settings
    from nova import context, objects

    settings.parse_args(["nova-manage", *config])
    objects.register_all()
    manage.ApiDbCommands().sync()
    cells = manage.CellV2Commands()
    cells.map_cell0(CELL0_DATABASE)  # does no harm twice, unlike create_cell
    known = [one.name for one in objects.CellMappingList.get_all(context.get_admin_context())]
    if "cell1" not in known and cells.create_cell("cell1", CELL1_DATABASE, CELL1_BROKER):
        sys.exit("cell1 cannot be created")
    sys.exit(manage.DbCommands().sync())


SERVICES = {one.__name__: one for one in (keystone, placement, glance, neutron, nova)}

if __name__ == "__main__":
    SERVICES[sys.argv[1]](*(f"--config-file={path}" for path in sys.argv[2:]))
