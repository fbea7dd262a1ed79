"""What a server does when it boots for the first time, for cloud-init."""

from __future__ import annotations

import base64
from pathlib import Path

import jinja2

TEMPLATE = Path(__file__).with_name("user_data.yaml.j2")


def user_data(registry: str, engine_port: int) -> str:
    """A cloud-config that brings up a Docker engine which trusts ``registry`` (host:port)."""
    daemon = {
        "hosts": [f"tcp://0.0.0.0:{engine_port}", "unix:///var/run/docker.sock"],
        "insecure-registries": [registry],
        "tls": False,
        "max-concurrent-downloads": 3,
        "log-driver": "json-file",
        "log-opts": {"max-size": "1m", "max-file": "2"},
    }
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(daemon=daemon)


def encoded(text: str) -> str:
    """As Nova takes it."""
    return base64.b64encode(text.encode()).decode()
