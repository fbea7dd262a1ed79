"""Where broker, Redis and registry are, and who a run is to them."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from include.model.errors import SetupError
from include.testbeds.live.files import script

START = "start them with `make live-services`"


@dataclass(frozen=True)
class Services:
    """Addresses and administrator's credentials from `services.sh env`."""

    values: dict[str, str] = field(repr=False)

    @classmethod
    def find(cls) -> Services:
        """Raises SetupError if they were never started."""
        path = Path(script("services.sh", "env").strip())
        if not path.is_file():
            raise SetupError(f"the services of the live testbed were never started; {START}")
        lines = path.read_text(encoding="utf-8").splitlines()
        return cls(dict(line.split("=", 1) for line in lines))

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    @cached_property
    def _secret(self) -> bytes:
        return Path(self["MASTER_SECRET_FILE"]).read_bytes().strip()

    def password(self, kind: str, run: str) -> str:
        """The run's password for ``amqp`` or ``redis``, derived instead of stored."""
        return hmac.new(self._secret, f"{kind}:{run}".encode(), hashlib.sha256).hexdigest()

    def amqp_url(self, run: str) -> str:
        """For the run's user, who may use the run's vhost only."""
        at = f"{self['ADDRESS']}:{self['AMQP_PORT']}"
        return f"amqp://{run}:{self.password('amqp', run)}@{at}/{run}"

    def redis_url(self, run: str) -> str:
        """For the run's user, who may use keys of the run only."""
        at = f"{self['ADDRESS']}:{self['REDIS_PORT']}"
        return f"redis://{run}:{self.password('redis', run)}@{at}/0"

    @property
    def redis_admin_url(self) -> str:
        """For the administrator, who may use every key."""
        login = f"{self['REDIS_ADMIN']}:{self['REDIS_PASSWORD']}"
        return f"redis://{login}@{self['ADDRESS']}:{self['REDIS_PORT']}/0"


def images() -> dict[str, Any]:
    """Output of `images.sh`: addresses by image, and the image of each operator."""
    path = Path(script("images.sh", "env").strip())
    if not path.is_file():
        raise SetupError("the images of the operators are not built; run `make live-images`")
    images: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return images


def image_of(images: dict[str, Any], operator: str) -> str:
    """Address with digest of an operator's image."""
    return str(images["images"][images["image_of"].get(operator, images["default"])])
