"""A real browser for tests and pictures: Chromium, driven by Playwright, that reaches no host."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "no browser: run setup/browser.sh, or name one in HEADGATE_BROWSER"


@contextmanager
def browser() -> Iterator["Browser"]:
    """Start the browser that is found; skip the test where there is none."""
    playwright_of = pytest.importorskip("playwright.sync_api", reason=MISSING).sync_playwright
    with playwright_of() as playwright:
        named = os.environ.get("HEADGATE_BROWSER")
        found_here = (shutil.which(name) for name in NAMES)
        program = named or next(filter(None, found_here), None)
        if program is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip(MISSING)
        chromium = playwright.chromium.launch(
            executable_path=program,
            args=["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
        )
        yield chromium
        chromium.close()
