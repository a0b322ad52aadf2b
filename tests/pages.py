"""A notebook's page is to be well-formed, without scripts, and with nothing from outside."""

from html.parser import HTMLParser

from rich.console import Console

__all__ = ["page_of", "printed", "text_in"]

VOID = {"img", "br", "path"}
LONGEST = 150_000
"""The most characters that an object may take in a notebook."""


class Page(HTMLParser):
    """Checks that elements are closed in the order in which they were opened."""

    def __init__(self):
        super().__init__()
        self.open, self.texts, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "iframe", "link", "object", "embed"), tag
        for name, value in attrs:
            assert not name.startswith("on"), name
            outside = name in ("src", "href") and not value.startswith("data:image/png;base64,")
            assert not outside, value
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID, tag
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.texts.append(data)


def page_of(x):
    """The HTML of an object, once it was checked."""
    html = x if isinstance(x, str) else x._repr_html_()
    page = Page()
    page.feed(html)
    page.close()
    assert not page.open, page.open
    assert len(html) < LONGEST, len(html)
    assert "url(" not in html and "@import" not in html
    html.encode()
    return html


def text_in(x):
    """The text of the page."""
    page = Page()
    page.feed(page_of(x))
    return "".join(page.texts)


def printed(x, width=100):
    """What rich prints, in lines of at most so many characters."""
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(x)
    text = capture.get()
    assert max(map(len, text.split("\n"))) <= width
    return text
