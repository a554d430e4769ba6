"""The page about Spark: its Python runs here, where PySpark is."""

from __future__ import annotations

from test_docs import ELSEWHERE, run_page


def test_the_code_on_the_page_runs(spark, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(ELSEWHERE) > 3
