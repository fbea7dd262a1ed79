"""The Airflow side of Tidebench: tasks, sensors. What they do is in ``include``."""
