"""Reports: one self-contained HTML page that people want to read.

``write(story, path)`` tells one run, ``write_many(stories, path)`` compares several, and
``headline(story)`` is the sentence on top (``number_headline`` for numbers).  The first two need
the extra ``plot``.
"""

from calibrant.report.headline import headline
from calibrant.report.numbers import number_headline
from calibrant.report.page import render, write, write_many

__all__ = ["headline", "number_headline", "render", "write", "write_many"]
