"""A mechanism driver of ML2 that binds every port at once, without an agent.

With TB_BRIDGE in the environment a guest's tap goes on that bridge; else ports lead nowhere.
"""

from __future__ import annotations

import os
from typing import Any

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api


class NoSwitch(api.MechanismDriver):
    """Makes ports active as soon as they are requested."""

    connectivity = portbindings.CONNECTIVITY_L2

    def initialize(self) -> None:
        """Nothing to prepare."""

    def bind_port(self, context: Any) -> None:
        """Bind to the first segment."""
        # Claims port filtering, so that Nova adds no rules to the machine's firewall.
        details: dict[str, Any]
        kind, details = portbindings.VIF_TYPE_OVS, {portbindings.CAP_PORT_FILTER: True}
        if bridge := os.environ.get("TB_BRIDGE"):
            kind, details = portbindings.VIF_TYPE_BRIDGE, details | {"bridge_name": bridge}
        for segment in context.segments_to_bind[:1]:
            context.set_binding(segment[api.ID], kind, details, status=constants.PORT_STATUS_ACTIVE)
