"""Open every page of a built site in Chromium, as wide as a desk and as a phone.

Run as ``python scripts/browse_site.py build/site [--pictures FOLDER]``. Says which pages are wider
than the window, lack an image or log an error, and ends with 1 if there are any. Needs selenium,
Chromium and its driver. With a folder it leaves a picture of each page there, to be looked at.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

WIDTHS = (1280, 390)
TALLEST = 4000  # of a picture, in pixels
FLAGS = (
    *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "hide-scrollbars"),
    *("disable-background-networking", "disable-component-update", "disable-sync"),
)
WIDTH = "return Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
HEIGHT = "return document.documentElement.scrollHeight"
LOST = "return [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"


def browser(profile: str) -> webdriver.Chrome:
    """A browser without a screen, in a profile of its own."""
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"user-data-dir={profile}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def resize(window: webdriver.Chrome, width: int, height: int) -> None:
    """Give the page a window of this size."""
    size: dict[str, Any] = {"width": width, "height": height, "deviceScaleFactor": 1}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "mobile": width < 600})


def faults(window: webdriver.Chrome, width: int) -> list[str]:
    """What is wrong with the page in the window."""
    seen = window.execute_script(WIDTH)
    said = [f"is {seen} pixels wide"] if seen > width else []
    said += [f"lacks {url}" for url in window.execute_script(LOST)]
    logged = [line for line in window.get_log("browser") if line["level"] == "SEVERE"]
    return said + [line["message"] for line in logged]


def main() -> int:
    """Browse the site that was named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("--pictures", type=Path, metavar="FOLDER")
    asked = parser.parse_args()
    site = asked.site.resolve()
    pages = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    wrong = 0
    with tempfile.TemporaryDirectory() as profile:
        window = browser(profile)
        try:
            for width in WIDTHS:
                for path in pages:
                    resize(window, width, 900)
                    window.get(path.as_uri())
                    for fault in faults(window, width):
                        wrong += 1
                        print(f"{path.relative_to(site)} at {width}: {fault}")
                    if asked.pictures:
                        asked.pictures.mkdir(parents=True, exist_ok=True)
                        resize(window, width, min(window.execute_script(HEIGHT), TALLEST))
                        name = path.relative_to(site).with_suffix("").as_posix().replace("/", "-")
                        window.save_screenshot(str(asked.pictures / f"{name}-{width}.png"))
        finally:
            window.quit()
    print(f"{len(pages)} pages at {len(WIDTHS)} widths, {wrong} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
