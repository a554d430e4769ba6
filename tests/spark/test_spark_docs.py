"""The page about Spark: its Python runs here, where PySpark is, and it names what there is."""

from __future__ import annotations

from test_docs import ELSEWHERE, run_page

from calibrant.integrations import spark as package


def test_the_code_on_the_page_runs(spark, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(ELSEWHERE) > 3


def test_the_page_names_all_that_there_is() -> None:
    text = ELSEWHERE.read_text()
    assert [name for name in package.__all__ if name not in text] == []
