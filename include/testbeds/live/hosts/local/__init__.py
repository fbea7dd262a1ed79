"""Docker hosts of this machine: `infra/live/hosts.sh`."""
