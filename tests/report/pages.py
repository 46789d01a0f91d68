"""Read a page back: its tables, headings, scripts and addresses, by the parser of Python itself."""

import re
from html.parser import HTMLParser

SCRIPT = re.compile(r"<script([^>]*)>(.*?)</script>", re.DOTALL)


class Page(HTMLParser):
    """What a reader gets: text, headings, tables (lists of rows of text), attributes that load."""

    def __init__(self, text):
        super().__init__()
        self.text, self.headings, self.tables, self.addresses, self.tags = [], [], [], [], []
        self._open = []
        self.scripts = [(found[1], found[2]) for found in SCRIPT.finditer(text)]
        self.feed(SCRIPT.sub("", text))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        loading = ("src", "href", "srcset", "action")
        self.addresses += [(tag, key, value) for key, value in attrs if key in loading]
        assert not any(key.startswith("on") for key, _ in attrs), tag
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag in ("h1", "h2", "h3", "h4"):
            self.headings.append("")
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if "style" in self._open:
            return
        self.text.append(data)
        if {"td", "th"} & set(self._open):
            self.tables[-1][-1][-1] += data
        for level in ("h1", "h2", "h3", "h4"):
            if level in self._open and "span" not in self._open:
                self.headings[-1] += data

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())

    def table(self, *heads):
        """The first table whose heads begin with these."""
        return next(t for t in self.tables if tuple(t[0][: len(heads)]) == heads)
