"""A page of the report, parsed for tests."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.text += data

    def values(self, tag, name):
        return [value for t, n, value in self.attributes if (t, n) == (tag, name)]
