"""The page "Experiments": every published run, found, compared and opened from Airflow's UI."""
