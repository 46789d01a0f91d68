"""Text can be read on its ground in both themes, and colours are told apart without hue."""

import re
from importlib.resources import files
from itertools import combinations

import pytest

TEMPLATES = files("expunge.report") / "templates"
TEXTS = ("ink", "muted", "accent", "good", "bad", "unsure", "plain")


def palette(name):
    text = (TEMPLATES / name).read_text(encoding="utf-8").split("--sans")[0]
    return dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", text))


def luminance(colour):
    """Relative luminance by the definition of WCAG."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["style.css", "dark.css"])
def test_text_has_the_contrast_of_wcag_aa(theme):
    colours = palette(theme)
    for name in TEXTS:
        for ground in ("paper", "surface"):
            assert contrast(colours[name], colours[ground]) >= 4.5, name
    for name in ("after", "chance", *(f"c{i}" for i in range(8))):
        assert contrast(colours[name], colours["paper"]) >= 2.5, name


@pytest.mark.parametrize("theme", ["style.css", "dark.css"])
def test_before_and_after_differ_in_lightness(theme):
    colours = palette(theme)
    assert contrast(colours["before"], colours["after"]) > 1.3


def test_both_themes_have_the_same_names():
    assert palette("style.css").keys() == palette("dark.css").keys()
    assert all(
        a != b for a, b in combinations([palette("style.css")[f"c{i}"] for i in range(8)], 2)
    )
