"""The schema of a service's database: python -m tb_openstack.schema SERVICE CONFIG...

The code that its manage command runs, all in one process: importing Nova five times would take
longer than making its tables.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

# Templates, so that the cells take changeable values from nova.conf.
CELL0_DATABASE = "{scheme}://{username}:{password}@{hostname}/nova_cell0?{query}"
CELL1_DATABASE = "{scheme}://{username}:{password}@{hostname}/{path}?{query}"
CELL1_BROKER = "{scheme}://{username}:{password}@{hostname}:{port}/"


def run(main: Callable[[], Any], *arguments: str) -> None:
    """Run a manage command; exits if it fails."""
    sys.argv = list(arguments)
    if code := main():
        sys.exit(code)


def keystone(*config: str) -> None:
    """Create tables, the administrator and the first endpoint."""
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
    """Create the tables of the API and both cells."""
    from nova.cmd import manage  # isort: skip  before anything else of nova: it patches
    from nova import config as settings
    from nova import context, objects

    settings.parse_args(["nova-manage", *config])
    objects.register_all()
    manage.ApiDbCommands().sync()
    cells = manage.CellV2Commands()
    cells.map_cell0(CELL0_DATABASE)  # may be repeated, unlike create_cell
    cells_present = [
        mapping.name for mapping in objects.CellMappingList.get_all(context.get_admin_context())
    ]
    if "cell1" not in cells_present and cells.create_cell("cell1", CELL1_DATABASE, CELL1_BROKER):
        sys.exit("cell1 cannot be created")
    sys.exit(manage.DbCommands().sync())


SERVICES = {step.__name__: step for step in (keystone, placement, glance, neutron, nova)}

if __name__ == "__main__":
    SERVICES[sys.argv[1]](*(f"--config-file={path}" for path in sys.argv[2:]))
