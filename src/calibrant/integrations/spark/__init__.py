"""calibrant for Spark: a table of streams on many machines, by batch or as a stream of events.

Needs PySpark 4.2 or newer and Java 17: ``pip install ".[spark]"``.  The workers need
calibrant too, and the same Python: set ``PYSPARK_PYTHON``.
"""

from calibrant.errors import needing

with needing(
    "calibrant.integrations.spark needs PySpark and PyArrow, which are not installed", "spark"
):
    from calibrant.integrations.spark.batch import recalibrate
    from calibrant.integrations.spark.columns import faults, forecasts
    from calibrant.integrations.spark.handover import (
        initial_state,
        read_service,
        read_shelves,
        read_table,
        read_tables,
    )
    from calibrant.integrations.spark.log import PostgresLog
    from calibrant.integrations.spark.sink import committed_files, read_committed
    from calibrant.integrations.spark.stream import recalibrate_stream

__all__ = [
    "PostgresLog",
    "committed_files",
    "faults",
    "forecasts",
    "initial_state",
    "read_committed",
    "read_service",
    "read_shelves",
    "read_table",
    "read_tables",
    "recalibrate",
    "recalibrate_stream",
]
