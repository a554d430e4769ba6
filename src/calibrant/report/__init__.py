"""Reports: one self-contained HTML page that people want to read.

``write(summary, path)`` shows one run, ``write_many(summaries, path)`` compares several, and
``headline(summary)`` is the sentence on top.  The first two need the extra ``plot``.
"""

from calibrant._renamed import renamed
from calibrant.report.page import render, save_pictures, write, write_many
from calibrant.report.tables import Section, View, headline, view_of

__all__ = [
    "Section", "View", "headline", "render", "save_pictures", "view_of", "write", "write_many",
]  # fmt: skip

__getattr__ = renamed(__name__, {"number_headline": "calibrant.report:headline"})
