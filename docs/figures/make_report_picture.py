"""Take the picture of a report for the documentation.

Run as ``python docs/figures/make_report_picture.py``.

Needs Chromium with chromedriver, selenium and pillow (``pip install -e '.[test]'``). The audit is
that of the embedded example.
"""

from __future__ import annotations

import base64
import io
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

import expunge as ex
from expunge.data import load_glove

HERE = Path(__file__).parent
WIDTH, COLOURS = 1120, 64
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")


def main() -> None:
    """Audit, write the report, open it, take the picture."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        embedded_audit().to_html(path)
        picture = photographed(path, folder)
    small = picture.convert("RGB").quantize(
        COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    )
    small.save(HERE / "report.png", optimize=True)


def embedded_audit() -> Any:
    """Gender erased from word vectors."""
    glove = load_glove()
    names = np.array(["male-biased", "female-biased"])
    y_train, y_test = names[glove.train.y], names[glove.test.y]
    return ex.audit(
        ex.RLACE().fit(glove.train.X, y_train).erasure_,
        glove.train.X,
        y_train,
        glove.test.X,
        y_test,
        words=(glove.train.words, glove.test.words),
        vocabulary=(glove.words, glove.vectors),
    )


def photographed(path: Path, folder: str) -> Image.Image:
    """The top of the page, as far as the first figure."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={folder}/profile"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        size = {"width": WIDTH, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(path.as_uri())
        ready = "return document.querySelectorAll('.plot .main-svg').length > 0"
        WebDriverWait(driver, 60).until(lambda page: page.execute_script(ready))
        end = "return document.querySelector('#before-and-after figcaption')"
        height = driver.execute_script(f"{end}.getBoundingClientRect().bottom + scrollY")
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {**size, "height": int(height) + 24}
        )
        driver.execute_async_script("setTimeout(arguments[0], 1000)")
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {})
    finally:
        driver.quit()
    return Image.open(io.BytesIO(base64.b64decode(shot["data"])))


if __name__ == "__main__":
    main()
