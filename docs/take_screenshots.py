"""Take the pictures of the page in docs/images, from a run of examples/forest.yaml.

It needs the browser of setup/browser.sh. With a FOLDER, it writes the pictures there instead,
also in dark and 400 pixels wide.
"""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from kit.browser import browser  # noqa: E402  # after the path to the tests

from headgate import Headgate, Query, load  # noqa: E402
from headgate.config import read_pipeline  # noqa: E402
from headgate.server import Control  # noqa: E402
from headgate.server.service import served  # noqa: E402

WIDTH, HEIGHT = 1150, 720
MOST_BYTES = 200_000
BAD = "SELECT location, temperature\nFROM sensors\nWHERE humidty < 10"
BY_ZERO = "SELECT location, 1 / (humidity - humidity) AS share FROM sensors"


def main(folder: Path, kinds: dict[str, tuple[str, int]]) -> None:
    """Run the pipeline, take all pictures, and stop.

    Args:
        kinds: color scheme and width of the pictures, by the suffix of their names.
    """
    with TemporaryDirectory() as state, browser() as chromium:
        pipeline = read_pipeline(
            ROOT / "examples/forest.yaml", {}, state=state, rehearsal_s=10.0, record=True
        )
        gate = load(pipeline)
        gate.add_query(Query(name="broken", sql=BY_ZERO, query_class="N"))
        gate.start()
        try:
            with served(gate, lambda: None):
                signed_in = Control.read(gate.state).signed_in()
                for suffix, (scheme, width) in kinds.items():
                    size = {"width": width, "height": HEIGHT}
                    context = chromium.new_context(viewport=size, color_scheme=scheme)
                    page = context.new_page()
                    page.set_default_timeout(240_000)
                    page.goto(signed_in)
                    take(page, folder, gate, suffix)
                    context.close()
        finally:
            gate.stop()


def take(page: Any, folder: Path, gate: Headgate, suffix: str) -> None:
    """Take a picture of each view; those of the light scheme are in the documentation."""
    folder.mkdir(parents=True, exist_ok=True)

    def picture(name: str, height: int = HEIGHT) -> None:
        file, width = folder / f"page-{name}{suffix}.png", page.viewport_size["width"]
        clip = {"x": 0, "y": 0, "width": width, "height": height}
        time.sleep(0.5)  # rows that come into view are drawn one frame later
        whole = height > HEIGHT
        page.screenshot(path=file, full_page=whole, clip=clip, animations="disabled")
        if file.stat().st_size > MOST_BYTES:
            print(f"{file} has {file.stat().st_size} bytes", file=sys.stderr)

    page.get_by_text("live", exact=True).wait_for()
    page.get_by_role("link", name="broken").wait_for()
    time.sleep(25 if not suffix else 6)  # until the charts have points
    picture("overview")
    page.get_by_role("link", name="Queries").click()
    page.get_by_role("link", name="fire_alarm").wait_for()
    picture("queries")
    page.get_by_role("link", name="fire_alarm").click()
    page.get_by_text("Operators").wait_for()
    time.sleep(4)
    picture("query", 1240)
    page.get_by_role("button", name="Pause").click()
    time.sleep(0.3)
    picture("confirmation")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    gate.set_policy("amos(dwell_s=0.5)")
    page.get_by_role("link", name="Policy").click()
    page.get_by_label("pending", exact=True).wait_for()
    time.sleep(5)
    picture("policy", 1150)
    gate.set_policy("cqc(inner=hr,period_steps=10)")
    page.get_by_role("link", name="Add").click()
    page.get_by_label("Name").fill("dry_spell")
    page.get_by_label("SQL").fill(BAD)
    page.get_by_role("button", name="Check").click()
    page.locator("li.refused").wait_for()
    picture("add")
    page.get_by_role("link", name="Network").click()
    page.locator(".network a").first.wait_for()
    time.sleep(2)
    picture("network", 1000)
    page.get_by_role("link", name="Queries").click()
    page.get_by_role("link", name="fire_alarm").click()
    page.get_by_role("button", name="Make a graph").click()
    page.get_by_role("button", name="Change", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Change").click()
    page.get_by_text("Changed:").wait_for()
    page.get_by_role("link", name="Changes").click()
    page.get_by_role("button", name="Undo").first.wait_for()
    picture("changes")
    page.get_by_role("link", name="What if?").click()
    page.get_by_label("Policies").fill("rr, hr")
    page.get_by_role("button", name="Replay").click()
    heading = page.get_by_role("heading", name="Which policy would have been better?")
    heading.wait_for(timeout=300_000)
    picture("what-if", 900)


if __name__ == "__main__":
    light = {"": ("light", WIDTH)}
    if len(sys.argv) > 1:
        more = {"-dark": ("dark", WIDTH), "-narrow": ("light", 400)}
        main(Path(sys.argv[1]), light | more)
    else:
        main(ROOT / "docs/images", light)
