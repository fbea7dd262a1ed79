"""What runs inside the containers of a live topology, and nothing else of the project.

The images copy this folder only, so it imports the standard library, pika and redis, and inside
functions what single operators need. One container is one instance: it takes items from the queue
of its operator, does the operator's work and sends what comes out to the queues of the targets.
Its settings, which hold the credentials of the run, are in a file (``settings.py``).
"""
