"""Measured Parquet in, one small staged file per published table out, through Spark SQL."""
