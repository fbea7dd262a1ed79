"""Where a live testbed leases its hosts: this machine (``local``) or a cloud (``openstack``)."""
