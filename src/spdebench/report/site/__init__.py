"""The static site: leaderboard, tables, datasets and runs as pages that open offline from the file system.

Importing this imports neither matplotlib nor Jinja2.
"""

from spdebench.report.site.build import build_site

__all__ = ["build_site"]
