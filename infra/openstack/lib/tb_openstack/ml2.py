"""A mechanism driver of ML2 that binds every port at once: there is no switch and no agent."""

from __future__ import annotations

from typing import Any

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api


class NoSwitch(api.MechanismDriver):
    """Ports are up as soon as they are asked for, and lead nowhere."""

    connectivity = portbindings.CONNECTIVITY_L2

    def initialize(self) -> None:
        """Nothing to prepare."""

    def bind_port(self, context: Any) -> None:
        """Take the first segment that is offered."""
        for segment in context.segments_to_bind[:1]:
            context.set_binding(
                segment[api.ID],
                portbindings.VIF_TYPE_OVS,
                {portbindings.CAP_PORT_FILTER: True},
                status=constants.PORT_STATUS_ACTIVE,
            )
