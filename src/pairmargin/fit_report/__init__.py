"""The report of a fit: one page that says what came out, and needs nothing but a browser.

`findings` holds what is known about a fit, `traits` finds what sets each cluster apart, `faces` shows items,
`point_map` lays them out in two dimensions, `sections` puts all that into words, and `page` into HTML.
"""

from .page import build_report, write_report

__all__ = ["build_report", "write_report"]
