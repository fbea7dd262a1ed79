-- Publishing again changes nothing unless the run was measured anew.
INSERT INTO origins (experiment, run, measured_at, dag_id, dag_run)
VALUES (:experiment, :run, :measured_at, :dag_id, :dag_run)
ON CONFLICT (experiment, run) DO UPDATE SET
  measured_at = excluded.measured_at,
  dag_id = excluded.dag_id,
  dag_run = excluded.dag_run
