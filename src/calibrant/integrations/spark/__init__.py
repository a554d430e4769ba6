"""calibrant for Spark."""

from calibrant.integrations.spark.batch import recalibrate
from calibrant.integrations.spark.columns import faults, forecasts
from calibrant.integrations.spark.stream import recalibrate_stream
