"""The command line, called within the test's own process."""

from __future__ import annotations

import pytest

from spdebench.cli.main import main


def call(*words: object) -> int:
    """The exit code of ``spdebench WORDS``."""
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    return int(caught.value.code or 0)
