"""The page in a real browser: Chromium, without a screen, from a file."""

import base64
import json
import shutil

import pytest
from test_page import HOSTILE

from expunge.report import render, write_report

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not (BROWSER and DRIVER):
    pytest.skip(
        "no Chromium here: install chromium and chromium-driver to test the page in a browser",
        allow_module_level=True,
    )

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1200,900",
]
PHONE = {"width": 360, "height": 780, "deviceScaleFactor": 2, "mobile": True}
DESK = {"width": 1200, "height": 900, "deviceScaleFactor": 1, "mobile": False}
SCATTER = "document.querySelector('figure[data-shown] .plot')"
POINTS = f"return {SCATTER}.data.map((trace) => [Array.from(trace.x), Array.from(trace.y)])"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def visit(chromium, tmp_path):
    """Open the page of an audit; fails afterwards on console messages and network requests."""
    chromium.get("about:blank")
    for kind in ("browser", "performance"):
        chromium.get_log(kind)
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", DESK)
    media(chromium, scheme="light")

    def open_page(text, query=""):
        path = tmp_path / "report.html"
        path.write_text(text, encoding="utf-8")
        chromium.get(path.as_uri() + query)
        ready = "return document.querySelectorAll('.plot .main-svg').length > 0"
        WebDriverWait(chromium, 60).until(lambda driver: driver.execute_script(ready))
        return chromium

    yield open_page
    media(chromium)
    assert [entry["message"] for entry in chromium.get_log("browser")] == []
    asked = [json.loads(entry["message"])["message"] for entry in chromium.get_log("performance")]
    addresses = {
        message["params"]["request"]["url"].split(":")[0]
        for message in asked
        if message["method"] == "Network.requestWillBeSent"
    }
    assert "file" in addresses  # the log works
    assert addresses <= {"file", "data", "blob"}


def media(driver, *, kind="", scheme="", motion="reduce"):
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": motion},
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": kind, "features": features})


def wait(driver, script):
    return WebDriverWait(driver, 30).until(lambda d: d.execute_script(f"return {script}"))


def scatter(driver):
    return driver.find_element(By.CSS_SELECTOR, "#before-and-after figure[data-shown]")


def shown_points(driver):
    return driver.execute_script(POINTS.replace("figure[data", "#before-and-after figure[data"))


def far_apart(points):
    """Distance of the middles of the two classes."""
    (ax, ay), (bx, by) = [(sum(x) / len(x), sum(y) / len(y)) for x, y in points]
    return ((ax - bx) ** 2 + (ay - by) ** 2) ** 0.5


def test_every_figure_is_drawn_without_errors_and_without_the_network(visit, text):
    driver = visit(text)
    figures = driver.find_elements(By.CSS_SELECTOR, "figure")
    drawn = driver.find_elements(By.CSS_SELECTOR, "figure .plot.js-plotly-plot")
    assert len(figures) == len(drawn) == 7
    for plot in drawn:
        assert plot.size["height"] > 100
        assert plot.size["width"] > 300


def test_the_page_cannot_load_anything_even_if_asked(visit, text):
    driver = visit(text)
    stopped = driver.execute_async_script(
        "const done = arguments[0];"
        "document.addEventListener('securitypolicyviolation',"
        " (event) => done([event.effectiveDirective, event.disposition]));"
        "fetch('http://127.0.0.1:9/').catch(() => {});"
    )
    assert stopped == ["connect-src", "enforce"]
    refused = driver.get_log("browser")  # so that the message is not an error of the page
    assert refused
    assert all("Content Security Policy" in entry["message"] for entry in refused)


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_the_toggle_moves_the_points(visit, text, words, motion):
    driver = visit(text)
    media(driver, scheme="light", motion=motion)
    before = shown_points(driver)
    assert far_apart(before) > 1  # the classes were apart
    for name, key in (("After", "after_shared"), ("After, on its own axes", "after")):
        scatter(driver).find_element(By.XPATH, f".//label[normalize-space()='{name}']").click()
        wait(driver, f"document.querySelector('#before-and-after figure[data-shown=\"{name}\"]')")
        after = shown_points(driver)
        assert far_apart(after) < 0.4
        xs = sorted(x for trace in after for x in trace[0])
        wanted = sorted(point[0] for point in words["pca"][key])
        assert xs == pytest.approx(wanted, abs=2e-3)
    scatter(driver).find_element(By.XPATH, ".//label[normalize-space()='Before']").click()
    wait(driver, "document.querySelector('#before-and-after figure[data-shown=Before]')")
    assert shown_points(driver) == before


def test_the_toggle_works_from_the_keyboard(visit, text):
    driver = visit(text)
    first = scatter(driver).find_element(By.CSS_SELECTOR, "input[type=radio]")
    driver.execute_script("arguments[0].focus()", first)
    first.send_keys(Keys.ARROW_RIGHT)
    wait(driver, "document.querySelector('#before-and-after figure[data-shown=After]')")
    focused = driver.switch_to.active_element
    assert focused.get_attribute("value") == "1"
    outline = "getComputedStyle(document.activeElement.nextElementSibling).outlineStyle"
    assert driver.execute_script(f"return {outline}") == "solid"


def test_all_controls_are_reached_by_tab(visit, text):
    driver = visit(text)
    body = driver.find_element(By.TAG_NAME, "body")
    seen = []
    for _ in range(80):
        body.send_keys(Keys.TAB)
        element = driver.switch_to.active_element
        if element.tag_name == "body":
            break
        seen.append((element.tag_name, element.get_attribute("type") or element.text))
    tags = {tag for tag, _ in seen}
    assert seen[0] == ("a", "Skip to the content") or seen[0][0] == "a"
    assert tags >= {"a", "button", "input", "summary", "div"}
    assert ("input", "radio") in seen
    assert ("input", "search") in seen


def test_hover_shows_the_word(visit, text):
    driver = visit(text)
    plot = scatter(driver).find_element(By.CSS_SELECTOR, ".plot")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    name, label, x, y = driver.execute_script(
        """
        const plot = arguments[0], box = plot.getBoundingClientRect();
        const { xaxis, yaxis } = plot._fullLayout, trace = plot.data[0];
        // the leftmost point, which no other covers
        const i = trace.x.indexOf(Math.min(...trace.x));
        return [trace.customdata[i][0], trace.customdata[i][1],
                box.left + xaxis._offset + xaxis.l2p(trace.x[i]),
                box.top + yaxis._offset + yaxis.l2p(trace.y[i])];
        """,
        plot,
    )
    hover = "document.querySelector('#before-and-after .hoverlayer').textContent"
    assert driver.execute_script(f"return {hover}") == ""
    for shift in (3, 0):
        move = {"type": "mouseMoved", "x": x + shift, "y": y}
        driver.execute_cdp_cmd("Input.dispatchMouseEvent", move)
    assert name in wait(driver, hover)
    assert label in driver.execute_script(f"return {hover}")


def test_a_word_can_be_found_without_a_mouse(visit, text, words):
    driver = visit(text)
    word = next(name for name in words["pca"]["names"] if len(name) > 6)
    box = scatter(driver).find_element(By.CSS_SELECTOR, "input[type=search]")
    box.send_keys(word)
    hover = "document.querySelector('#before-and-after .hoverlayer').textContent"
    assert word in wait(driver, hover)
    box.clear()
    box.send_keys("no such word 123")
    said = scatter(driver).find_element(By.TAG_NAME, "output")
    assert said.text == "not among the points shown"


def test_search_filters_and_heads_sort(visit, text, words):
    driver = visit(text)
    box = driver.find_element(By.CSS_SELECTOR, "#words .table")
    rows = box.find_elements(By.CSS_SELECTOR, "tbody tr")
    entries = words["association"]["neighbours"]
    assert len(rows) == len(entries) > 2
    word = entries[1]["word"]
    wanted = [
        found["word"]
        for found in entries
        if any(word in text for text in [found["word"], *found["before"], *found["after"]])
    ]
    box.find_element(By.CSS_SELECTOR, "input[type=search]").send_keys(word.upper())
    visible = [row.find_element(By.TAG_NAME, "th").text for row in rows if row.is_displayed()]
    assert visible == wanted
    assert len(visible) < len(rows)
    said = box.find_element(By.TAG_NAME, "output").text
    assert said == f"{len(wanted)} of {len(rows)} rows"
    box.find_element(By.CSS_SELECTOR, "input[type=search]").clear()
    head = box.find_element(By.CSS_SELECTOR, "thead th")
    for order in ("ascending", "descending"):
        head.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
        assert head.get_attribute("aria-sort") == order
        found = [th.text for th in box.find_elements(By.CSS_SELECTOR, "tbody th")]
        assert found == sorted([e["word"] for e in entries], reverse=order == "descending")


def test_dark_follows_the_system_and_the_button(visit, text):
    driver = visit(text)
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = f"{SCATTER}.layout.font.color"
    light = [driver.execute_script(f"return {what}") for what in (ground, ink)]
    media(driver, scheme="dark")
    wait(driver, f"{ink} !== '{light[1]}'")
    dark = [driver.execute_script(f"return {what}") for what in (ground, ink)]
    assert dark[0] != light[0]
    button = driver.find_element(By.ID, "theme")
    assert button.text == "Light"
    button.send_keys(Keys.ENTER)
    assert [driver.execute_script(f"return {what}") for what in (ground, ink)] == light


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["words", "number", "training_only", "long"])
def test_nothing_sticks_out_on_a_phone(visit, words, request, which, scheme):
    audit = words if which == "long" else request.getfixturevalue(which)
    if which == "long":
        long = "Donaudampfschifffahrtsgesellschaft" * 3
        audit["concept"]["labels"] = [long, long + "2"]
        audit["verdict"]["headline"] = long
        audit["erasure"]["method"] = long
    driver = visit(render(audit))
    media(driver, scheme=scheme)
    for size in (PHONE, DESK):
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        for part in driver.find_elements(By.TAG_NAME, "details"):
            driver.execute_script("arguments[0].open = true", part)
        fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        wait(driver, fits)
        wait(driver, f"{SCATTER}.querySelector('.main-svg').clientWidth <= {size['width']}")


def test_paper_shows_everything_in_black_on_white(visit, text, tmp_path):
    driver = visit(text)
    media(driver, kind="print", scheme="dark")
    folded = driver.find_elements(By.CSS_SELECTOR, "details:not([open])")
    assert folded
    driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert not driver.find_elements(By.CSS_SELECTOR, "details:not([open])")
    for control in ("nav", ".tools", ".views", ".search"):
        assert not driver.find_element(By.CSS_SELECTOR, control).is_displayed()
    assert driver.find_element(By.CSS_SELECTOR, ".statement").is_displayed()
    ground = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    copies = driver.find_elements(
        By.CSS_SELECTOR, "#before-and-after figure:first-of-type .copies p"
    )
    assert [copy.text for copy in copies] == ["Before", "After", "After, on its own axes"]
    driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert not driver.find_elements(By.CSS_SELECTOR, ".copies")
    assert len(driver.find_elements(By.CSS_SELECTOR, "details:not([open])")) == len(folded)
    media(driver, scheme="light")
    pdf = driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"]
    assert base64.b64decode(pdf).startswith(b"%PDF")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_and_labels_are_shown_not_run(visit, words, text):
    words["concept"]["labels"] = [text, "other"]
    words["pca"]["labels"] = [
        text if label == "male-biased" else "other" for label in words["pca"]["labels"]
    ]
    words["pca"]["names"] = [text for _ in words["pca"]["names"]]
    words["association"]["neighbours"][0] = {
        "word": text,
        "before": [text],
        "after": [text, "new" + text],
        "kept": 0.5,
    }
    for stage in ("before", "after"):
        gaps = words["fairness"][stage]["gaps"]
        gaps["classes"] = [text, "short"]
        gaps["groups"] = ["female-biased", text]
        gaps["gap_groups"] = [text]
        for protocol in ("fresh_rows", "same_rows"):
            for family in words[protocol][stage].values():
                family["probes"][0]["name"] = family["worst"] = text
    words["erasure"]["method"] = words["erasure"]["parameters"][text] = text
    words["limits"] = [text]
    driver = visit(render(words))
    assert driver.execute_script("return window.hacked") is None
    assert driver.execute_script("return document.querySelectorAll('img, main a').length") == 0
    drawn = "return document.querySelector('#before-and-after .legendtext').textContent"
    legend = driver.execute_script(drawn)
    assert legend[:10].strip() in (text[:10].strip(), "other")
    driver.execute_script(f"Plotly.Fx.hover({SCATTER}, [{{curveNumber: 0, pointNumber: 0}}])")
    hover = "document.querySelector('#before-and-after .hoverlayer').textContent"
    assert wait(driver, hover).replace("\xa0", " ").startswith(text[:20])
    assert driver.execute_script("return document.querySelectorAll('.hoverlayer a').length") == 0


def test_a_written_report_opens(visit, words, tmp_path):
    path = tmp_path / "written <&> ü.html"
    write_report(words, path)
    driver = visit(path.read_text(encoding="utf-8"))
    assert driver.title == "Erasure audit: female-biased / male-biased"
