"""One log: Spark comes to the answers and bodies of a table, and sets aside what is told again."""

from __future__ import annotations

import pytest

from benchmarks.one_log.log import made_log
from benchmarks.one_log.spark import arrow_of, chosen, repeated, result_of
from benchmarks.one_log.ways import MODELS, by_table
from calibrant.integrations.spark.fleet import run, write


@pytest.mark.parametrize("name", MODELS)
def test_a_log_on_spark_comes_to_what_a_table_comes_to(spark, tmp_path, name) -> None:
    log, model = chosen(made_log(2000, 50)), MODELS[name]
    write(arrow_of(log), tmp_path / "in", 3)
    run(spark, tmp_path, model=model.pattern)
    found, aside = result_of(spark, tmp_path, model)
    assert found == by_table(log, model)
    assert aside == repeated(log)
    assert len(aside) > 20
