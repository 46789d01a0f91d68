"""The page in a real browser: Chromium, without a screen, from a file."""

import base64
import json
import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from test_page import HOSTILE

from expunge.report import render

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER),
    reason="no Chromium here: install chromium and chromium-driver to test the page in a browser",
)

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
HOVER = "document.querySelector('#before-and-after .hoverlayer').textContent"
RESET = """
document.querySelectorAll(".views").forEach((views) => views.querySelector("input").click());
document.querySelectorAll("input[type=search]").forEach((box) => {
  box.value = "";
  box.dispatchEvent(new Event("input"));
});
delete document.documentElement.dataset.theme;
window.scrollTo({ top: 0, behavior: "instant" });
document.activeElement.blur();
"""
POINTS = f"return {SCATTER}.data.map((trace) => [Array.from(trace.x), Array.from(trace.y)])"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
    yield driver
    driver.quit()


@pytest.fixture
def visit(chromium, tmp_path):
    """Open a page; fails afterwards on console messages and network requests."""
    chromium.get("about:blank")
    chromium.get_log("performance")

    def open_page(text):
        path = tmp_path / "report.html"
        path.write_text(text, encoding="utf-8")
        return load(chromium, path)

    yield open_page
    assert not chromium.get_log("browser")
    assert "file" in asked_for(chromium)


@pytest.fixture(scope="module")
def opened(chromium, text, tmp_path_factory):
    """The page of an audit with everything in it, opened once."""
    chromium.get("about:blank")
    chromium.get_log("performance")
    path = tmp_path_factory.mktemp("page") / "written <&> ü.html"
    path.write_text(text, encoding="utf-8")
    load(chromium, path)
    chromium.address = chromium.current_url
    return chromium


@pytest.fixture
def driver(opened):
    """That page as it was in the beginning; fails afterwards like `visit`."""
    if opened.current_url != opened.address:
        opened.get(opened.address)
    media(opened, scheme="light")
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", DESK)
    opened.execute_script(RESET)
    wait(opened, "document.querySelector('#before-and-after figure[data-shown=Before]')")
    yield opened
    assert not opened.get_log("browser")
    assert asked_for(opened) <= {"file"}


def load(driver, path):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", DESK)
    media(driver, scheme="light")
    driver.get(path.as_uri())
    wait(driver, "document.querySelectorAll('.plot .main-svg').length > 0")
    return driver


def asked_for(driver):
    """Kinds of addresses that were requested since the last look."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    addresses = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    kinds = {address.split(":")[0] for address in addresses}
    assert kinds <= {"file", "data", "blob"}, addresses
    return kinds


def media(driver, *, kind="", scheme="", motion="reduce"):
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": motion},
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": kind, "features": features})


def wait(driver, script):
    return WebDriverWait(driver, 30).until(lambda d: d.execute_script(f"return {script}"))


def empty(box):
    """As a person does it: select all, delete."""
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(Keys.BACKSPACE)


def choose(driver, name):
    """Click on a view of the scatter plot and wait for it."""
    label = scatter(driver).find_element(By.XPATH, f".//label[normalize-space()='{name}']")
    driver.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", label
    )
    label.click()
    wait(driver, f"document.querySelector('#before-and-after figure[data-shown=\"{name}\"]')")


def scatter(driver):
    return driver.find_element(By.CSS_SELECTOR, "#before-and-after figure[data-shown]")


def shown_points(driver):
    return driver.execute_script(POINTS.replace("figure[data", "#before-and-after figure[data"))


def far_apart(points):
    """Distance of the middles of the two classes, which are drawn in turns."""
    middles = []
    for own in (points[::2], points[1::2]):
        middles.append(
            [sum(map(sum, part)) / sum(map(len, part)) for part in zip(*own, strict=True)]
        )
    (ax, ay), (bx, by) = middles
    return ((ax - bx) ** 2 + (ay - by) ** 2) ** 0.5


def test_every_figure_is_drawn_without_errors_and_without_the_network(driver):
    figures = driver.find_elements(By.CSS_SELECTOR, "figure")
    drawn = driver.find_elements(By.CSS_SELECTOR, "figure .plot.js-plotly-plot")
    assert len(figures) == len(drawn) == 8
    for plot in drawn:
        assert plot.size["height"] > 100
        assert plot.size["width"] > 300


def test_the_page_cannot_load_anything_even_if_asked(driver):
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
def test_the_toggle_moves_the_points(driver, words, motion):
    media(driver, scheme="light", motion=motion)
    before = shown_points(driver)
    assert far_apart(before) > 1  # the classes were apart
    for name, key in (("After", "after_shared"), ("After, on its own axes", "after")):
        choose(driver, name)
        after = shown_points(driver)
        assert far_apart(after) < 0.4
        xs = sorted(x for trace in after for x in trace[0])
        wanted = sorted(point[0] for point in words["pca"][key])
        assert xs == pytest.approx(wanted, abs=2e-3)
    choose(driver, "Before")
    assert shown_points(driver) == before


def test_the_toggle_works_from_the_keyboard(driver):
    first = scatter(driver).find_element(By.CSS_SELECTOR, "input[type=radio]")
    driver.execute_script("arguments[0].focus()", first)
    first.send_keys(Keys.ARROW_RIGHT)
    wait(driver, "document.querySelector('#before-and-after figure[data-shown=After]')")
    focused = driver.switch_to.active_element
    assert focused.get_attribute("value") == "1"
    outline = "getComputedStyle(document.activeElement.nextElementSibling).outlineStyle"
    assert driver.execute_script(f"return {outline}") == "solid"


def test_all_controls_are_reached_by_tab(driver):
    skip = driver.find_element(By.CSS_SELECTOR, ".skip")
    assert skip.location["x"] < 0
    driver.execute_script("arguments[0].focus()", skip)
    assert skip.location["x"] > 0  # seen once it has the focus
    seen = set()
    for _ in range(45):
        element = driver.switch_to.active_element
        element.send_keys(Keys.TAB)
        seen.add((element.tag_name, element.get_attribute("type") or ""))
    assert seen >= {
        ("a", ""),
        ("button", "button"),
        ("input", "radio"),
        ("input", "search"),
        ("summary", ""),
        ("div", ""),  # tables that scroll
    }


def test_hover_shows_the_word(driver):
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
    assert driver.execute_script(f"return {HOVER}") == ""
    for shift in (3, 0):
        move = {"type": "mouseMoved", "x": x + shift, "y": y}
        driver.execute_cdp_cmd("Input.dispatchMouseEvent", move)
    assert name in wait(driver, HOVER)
    assert label in driver.execute_script(f"return {HOVER}")


def test_a_word_can_be_found_without_a_mouse(driver, words):
    word = next(name for name in words["pca"]["names"] if len(name) > 6)
    box = scatter(driver).find_element(By.CSS_SELECTOR, "input[type=search]")
    box.send_keys(word)
    wait(driver, f"{HOVER}.startsWith('{word}')")
    empty(box)
    box.send_keys("no such word 123")
    said = scatter(driver).find_element(By.TAG_NAME, "output")
    assert said.text == "not among the points shown"


def test_search_filters_and_heads_sort(driver, words):
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
    empty(box.find_element(By.CSS_SELECTOR, "input[type=search]"))
    head = box.find_element(By.CSS_SELECTOR, "thead th")
    for order in ("ascending", "descending"):
        head.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
        assert head.get_attribute("aria-sort") == order
        found = [th.text for th in box.find_elements(By.CSS_SELECTOR, "tbody th")]
        assert found == sorted([e["word"] for e in entries], reverse=order == "descending")


def test_dark_follows_the_system_and_the_button(driver):
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


@pytest.mark.parametrize("which", ["words", "number", "training_only", "long"])
def test_nothing_sticks_out_on_a_phone(visit, words, request, which):
    audit = words if which == "long" else request.getfixturevalue(which)
    if which == "long":
        long = "Donaudampfschifffahrtsgesellschaft" * 3
        audit["concept"]["labels"] = [long, long + "2"]
        audit["verdict"]["headline"] = long
        audit["erasure"]["method"] = long
    driver = visit(render(audit))
    driver.execute_script("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    for scheme, size in (("light", DESK), ("light", PHONE), ("dark", PHONE)):
        media(driver, scheme=scheme)
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        wait(driver, fits)
        drawn = f"{SCATTER}.querySelector('.main-svg').clientWidth"
        wait(driver, f"{drawn} > 0.7 * innerWidth * {size is PHONE:d} && {drawn} <= innerWidth")


def test_paper_shows_everything_in_black_on_white(driver):
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
    copies = scatter(driver).find_elements(By.CSS_SELECTOR, ".copies p")
    assert [copy.text for copy in copies] == ["Before", "After", "After, on its own axes"]
    driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert not driver.find_elements(By.CSS_SELECTOR, ".copies")
    assert len(driver.find_elements(By.CSS_SELECTOR, "details:not([open])")) == len(folded)
    media(driver, scheme="light")
    pdf = driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"]
    assert base64.b64decode(pdf).startswith(b"%PDF")


def test_hostile_words_and_labels_are_shown_not_run(visit, words):
    texts = HOSTILE
    many = [texts[i % len(texts)] for i in range(len(words["pca"]["rows"]))]
    words["pca"]["labels"] = words["pca"]["names"] = many
    words["concept"] |= {
        "labels": texts,
        "train_means": [0.1] * len(texts),
        "test_means": [0.1] * len(texts),
    }
    words["association"]["neighbours"] = [
        {"word": text, "before": [text], "after": [text, "new" + text], "kept": 0.5}
        for text in texts
    ]
    for stage in ("before", "after"):
        gaps = words["fairness"][stage]["gaps"]
        gaps["classes"], gaps["groups"], gaps["gap_groups"] = texts[:2], texts[2:4], texts[2:3]
        for protocol in ("fresh_rows", "same_rows"):
            for family in words[protocol][stage].values():
                family["worst"] = texts[4]
                for probe, text in zip(family["probes"], texts[4:], strict=False):
                    probe["name"] = text
    words["erasure"]["method"] = texts[0]
    words["erasure"]["parameters"] = dict(zip(texts, reversed(texts), strict=True))
    words["limits"] = words["verdict"]["lines"] = words["data"]["notes"] = texts
    driver = visit(render(words))
    assert driver.execute_script("return window.hacked") is None
    assert driver.execute_script("return document.querySelectorAll('img, main a').length") == 0
    assert driver.title.startswith(f"Erasure audit: {texts[0][:29]}")
    legend = "return Array.from(document.querySelectorAll('#before-and-after .legendtext'))"
    shown = driver.execute_script(f"{legend}.map((text) => text.textContent)")
    for text in texts:
        start = " ".join(text[:12].split())
        assert any(" ".join(name.replace("\xa0", " ").split()).startswith(start) for name in shown)
    for number in range(len(texts)):
        point = f"[{{curveNumber: {number}, pointNumber: 0}}]"
        driver.execute_script(f"Plotly.Fx.hover({SCATTER}, {point})")
        said = " ".join(wait(driver, HOVER).replace("\xa0", " ").split())
        assert any(said.startswith(" ".join(text[:20].split())) for text in texts)
        assert (
            driver.execute_script("return document.querySelectorAll('.hoverlayer a').length") == 0
        )
    assert driver.execute_script("return window.hacked") is None


# -- inside a model --------------------------------------------------------------------------------

PROBES = """
const plot = document.querySelector('#inside-the-model .plot');
return plot.data.map((trace) => [trace.name, Array.from(trace.y)]);
"""


def test_probes_by_layer_are_drawn(driver, words):
    found = dict(driver.execute_script(PROBES))
    assert found == {**words["model"]["probes"], "largest class": [0.5] * 4}
    figure = driver.find_element(By.CSS_SELECTOR, "#inside-the-model figure")
    assert len(figure.find_elements(By.CSS_SELECTOR, ".scatterlayer .trace")) == 4
    ticks = [tick.text for tick in figure.find_elements(By.CSS_SELECTOR, ".xtick text")]
    assert ticks == words["model"]["layers"]
    lines = driver.execute_script(
        "return Array.from(document.querySelectorAll('#inside-the-model .js-line'),"
        " (line) => getComputedStyle(line).stroke)"
    )
    assert len(set(lines)) == 4  # before, after, control and chance can be told apart


def test_the_page_of_an_evaluation_by_itself(visit, words, tmp_path):
    evaluation = pytest.importorskip("expunge.integrations.scrub_evaluation").ScrubEvaluation(
        **{key: value for key, value in words["model"].items() if key != "perplexity"}
        | {"layers": ("<b>h.0</b>", *(f"a.long.name.{'of.a.module.' * 4}{i}" for i in range(3)))}
    )
    evaluation.to_html(tmp_path / "evaluation.html")
    driver = visit((tmp_path / "evaluation.html").read_text())
    assert dict(driver.execute_script(PROBES))["after"] == words["model"]["probes"]["after"]
    ticks = [tick.text for tick in driver.find_elements(By.CSS_SELECTOR, ".xtick text")]
    assert len(ticks) == 4
    assert ticks[0] == "<b>h.0</b>"
    table = driver.find_elements(By.CSS_SELECTOR, "#inside-the-model table")[-1]
    assert "accuracy for the task" in table.text
    assert "Kullback-Leibler" in table.text
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
