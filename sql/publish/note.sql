-- Publishing an edition again only moves its time and who did it.
INSERT INTO publications (experiment, edition, published_at, checks, dag_id, dag_run)
VALUES (:experiment, :edition, :published_at, :checks, :dag_id, :dag_run)
ON CONFLICT (experiment, edition) DO UPDATE SET
  published_at = excluded.published_at,
  checks = excluded.checks,
  dag_id = excluded.dag_id,
  dag_run = excluded.dag_run
