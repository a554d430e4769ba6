"""Every page of Markdown: its Python runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import doctest
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
ELSEWHERE = ROOT / "docs" / "how-to" / "spark.md"
"""A page that runs where PySpark is: see tests/spark/test_spark_docs.py."""
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

FENCE = re.compile(r"^```(?P<language>\S*)[^\n]*\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)(?P<target>[^)#\s]+)")
COMMAND = re.compile(r"^(?:\$ )?(?:\w+=\S+ )*(?P<program>\./\S+|script/\S+|\.ci/\S+)", re.MULTILINE)
LANGUAGES = {"python", "pycon", "sh", "console", "text", "json", "toml", "bibtex"}


class Block(NamedTuple):
    language: str
    body: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Block(match["language"], match["body"], line)


def run_examples(block: Block, page: Path, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block.body, {}, page.name, str(page), block.line)
    test.globs = names
    report: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append, clear_globs=False)
    if report:
        pytest.fail("".join(report), pytrace=False)


def run_program(block: Block, page: Path, names: dict[str, Any]) -> None:
    # The empty lines make a traceback point at the line of the page.
    exec(compile("\n" * block.line + block.body, str(page), "exec"), names)


def run_page(page: Path) -> int:
    """Run the page's Python from top to bottom, in one namespace; return how many blocks."""
    names: dict[str, Any] = {"__name__": "__main__"}
    python = [block for block in blocks(page) if block.language in {"python", "pycon"}]
    for block in python:
        run = run_examples if ">>>" in block.body else run_program
        run(block, page, names)
    return len(python)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if page != ELSEWHERE], ids=name_of)
def test_the_code_on_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= LANGUAGES


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_code_hides_outside_the_blocks_that_run(page: Path) -> None:
    prose = FENCE.sub("", page.read_text())
    assert "```" not in prose
    assert ">>>" not in prose
    assert "doctest: +SKIP" not in page.read_text()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files(page: Path) -> None:
    targets = [match["target"] for match in LINK.finditer(page.read_text())]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_of_ours_can_be_run(page: Path) -> None:
    shell = [block.body for block in blocks(page) if block.language in {"sh", "console"}]
    programs = [match["program"] for body in shell for match in COMMAND.finditer(body)]
    assert [name for name in programs if not os.access(ROOT / name, os.X_OK)] == []


def test_the_readme_shows_the_package_at_work() -> None:
    first = next(block for block in blocks(ROOT / "README.md") if block.language == "python")
    assert "from calibrant import" in first.body


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.md"


def test_a_page_is_run_from_top_to_bottom_in_one_namespace(page: Path) -> None:
    page.write_text("```python\nseven = 7\n```\n\n```python\n>>> seven + 1\n8\n```\n")
    assert run_page(page) == 2


def test_a_wrong_answer_on_a_page_is_found(page: Path) -> None:
    page.write_text("words\n\n```python\n>>> 1 + 1\n3\n```\n")
    with pytest.raises(pytest.fail.Exception, match=r"Expected:\s+3\s+Got:\s+2"):
        run_page(page)


def test_a_program_on_a_page_that_fails_is_found_by_its_line(page: Path) -> None:
    page.write_text("words\n\n```python\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(page)
    assert caught.traceback[-1].lineno == 3
