-- Which DAG run measured a run, and when it was complete: one row per run that is published.
CREATE TABLE IF NOT EXISTS origins (
  experiment TEXT NOT NULL,
  run TEXT NOT NULL,
  measured_at TEXT NOT NULL,
  dag_id TEXT NOT NULL,
  dag_run TEXT NOT NULL,
  PRIMARY KEY (experiment, run)
)
