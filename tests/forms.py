"""Forms as a browser submits them: every field that is in the page, line breaks as CR LF."""

from html.parser import HTMLParser


class _Form(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._textarea = ""
        self._text: list[str] = []
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        name = given.get("name", "")
        if tag == "input" and name and self._is_sent(given, dict(attrs)):
            self.fields[name] = given.get("value", "on" if "type" in given else "")
        elif tag == "textarea":
            self._textarea, self._text = name, []
        elif tag == "select":
            self._select = name
        elif tag == "option" and ("selected" in given or self._select not in self.fields):
            # The first, unless another is selected.
            self.fields[self._select] = given["value"]

    def _is_sent(self, given: dict[str, str], attrs: dict[str, str | None]) -> bool:
        return given.get("type") not in ("checkbox", "radio") or "checked" in attrs

    def handle_data(self, data: str) -> None:
        if self._textarea:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            # The first line break after the tag belongs to the tag.
            text = "".join(self._text).replace("\r\n", "\n").removeprefix("\n")
            self.fields[self._textarea] = "\r\n".join(text.split("\n"))
            self._textarea = ""
        elif tag == "select":
            self._select = ""


def submitted(html: str, **changes: str) -> dict[str, str]:
    form = _Form()
    form.feed(html)
    form.close()
    return form.fields | changes
