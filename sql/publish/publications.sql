-- Who published which edition, and when: one row per edition, the last publication of it.
CREATE TABLE IF NOT EXISTS publications (
  experiment TEXT NOT NULL,
  edition TEXT NOT NULL,
  published_at TEXT NOT NULL,
  checks BIGINT NOT NULL,
  dag_id TEXT NOT NULL,
  dag_run TEXT NOT NULL,
  PRIMARY KEY (experiment, edition)
)
