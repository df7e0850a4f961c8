"""Links and images to other hosts are inert, in every way in which Markdown and HTML have them."""

import json

import pytest

from inspection.links import hosts_of, outside
from inspection.results import ResultRules, clean

HOSTS = "corp.example *.docs.example www.docs.example"
RULES = ResultRules(links=True, hosts=HOSTS)


def inert(text: str) -> str:
    """As an agent gets it, in JSON with and without escapes."""
    said = {
        json.loads(clean(json.dumps([text], ensure_ascii=plain).encode(), RULES).body)[0]
        for plain in (True, False)
    }
    (one,) = said
    return str(one)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("see https://evil.example/x?q=1", "see hxxps://evil[.]example/x?q=1"),
        ("![x](http://evil.example/p.png)", "![x](hxxp://evil[.]example/p.png)"),
        ("HTTPS://EVIL.example.", "hxxps://EVIL[.]example[.]"),
        ("[a](//evil.example/p)", "[a](hxxps://evil[.]example/p)"),
        (r"[a](\\evil.example/p)", "[a](hxxps://evil[.]example/p)"),
        ("[a]: //evil.example/p", "[a]: hxxps://evil[.]example/p"),
        ('<img src="//evil.example/p">', '<img src="hxxps://evil[.]example/p">'),
        ("<img src=https&#58;//evil.example/p>", "<img src=hxxps://evil[.]example/p>"),
        (r"![a](https\://evil.example/p)", "![a](hxxps://evil[.]example/p)"),
        ("![a](&#104;ttps://evil.example/p)", "![a](hxxps://evil[.]example/p)"),
        (r"https:\\evil.example\p", r"hxxps://evil[.]example\p"),
        ("https:evil.example", "hxxps://evil[.]example"),
        ("https://corp.example@evil.example/", "hxxps://corp[.]example@evil[.]example/"),
        ("https://corp.example.evil.example", "hxxps://corp[.]example[.]evil[.]example"),
        ("https://corp.example,@evil.example/", "hxxps://corp[.]example,@evil.example/"),
        (r"https://corp.example\@evil.example/", r"hxxps://corp[.]example\@evil.example/"),
        ("https://docs.example/", "hxxps://docs[.]example/"),
        ("ftp://corp.example/x", "fxp://corp[.]example/x"),
        ("http://[::1]:80/x", "hxxp://[::1]:80/x"),
        ("https://corp。example/", "hxxps://corp。example/"),
        (
            "[a](https://corp.example)[b](https://evil.example/p)",
            "[a](https://corp.example)[b](hxxps://evil[.]example/p)",
        ),
        (
            "https://evil.example)[b](https://worse.example/p",
            "hxxps://evil[.]example)[b](hxxps://worse[.]example/p",
        ),
        # A user's name may begin with anything, and slashes are as many as one likes.
        ("![x](https://*@evil.example/q)", "![x](hxxps://*@evil.example/q)"),
        ("![x](<https:// @evil.example/q>)", "![x](<hxxps:// @evil.example/q>)"),
        ("https:///////////evil.example/q", "hxxps://evil[.]example/q"),
        # Readers of HTML leave tabs and ends of lines out of an address.
        ('<img src="ht\ntps://evil.example/p">', '<img src="hxxps://evil[.]example/p">'),
        ('<img src="https:\n/\t/evil.example/p">', '<img src="hxxps://evil[.]example/p">'),
        ('<img src="/\n/evil.example/p">', '<img src="hxxps://evil[.]example/p">'),
        ('<img src="ht&Tab;tps://evil.example/p">', '<img src="hxxps://evil[.]example/p">'),
        (
            '<img src="https://corp.example\n.evil.example/p">',
            '<img src="hxxps://corp[.]example\n.evil.example/p">',
        ),
        ("https://corp.example;.evil.example/p", "hxxps://corp[.]example;.evil.example/p"),
        (r"[a](https://corp.example\.evil.example)", r"[a](hxxps://corp[.]example\.evil.example)"),
        # As far from what begins it as one likes, within another, and in any attribute.
        (f"[a]({' ' * 99}//evil.example/p)", f"[a]({' ' * 99}hxxps://evil[.]example/p)"),
        ("![a](x![b](//evil.example/p)", "![a](x![b](hxxps://evil[.]example/p)"),
        ("> [a](\n> //evil.example/p)", "> [a](\n> hxxps://evil[.]example/p)"),
        ("<a ping=//evil.example>", "<a ping=hxxps://evil[.]example>"),
        ("<button formaction=//evil.example>", "<button formaction=hxxps://evil[.]example>"),
        ("<img srcset='a 1x, //evil.example/b'>", "<img srcset='a 1x, hxxps://evil[.]example/b'>"),
        ("<i content='0;url=//evil.example'>", "<i content='0;url=hxxps://evil[.]example'>"),
        ("@import '//evil.example/x.css'", "@import 'hxxps://evil[.]example/x.css'"),
        # GitHub's Markdown links these.
        ("1https://evil.example/x", "1hxxps://evil[.]example/x"),
        ("www.evil.example/?q=1", "www[.]evil[.]example/?q=1"),
        # Another machine's share.
        ("<img src=file://evil.example/s/x>", "<img src=fxle://evil[.]example/s/x>"),
        ("ht\u200btps://evil\u200b.example/x", "hxxps://evil[.]example/x"),
    ],
)
def test_other_hosts_are_not_led_to(text: str, said: str) -> None:
    assert inert(text) == said
    assert not outside(said, hosts_of(HOSTS))


@pytest.mark.parametrize(
    "text",
    [
        "https://corp.example/a?b=//c and http://corp.example:8080.",
        "[a](https://corp.example), https://a.docs.example/x_(y)",
        "<https://CORP.example/> <img src='//corp.example/p.png'>",
        "![a](https://corp.example/?a=1&amp;b=2)",
        "// a comment, a//b, C:\\x, std::string, a & b, file:///srv/x, mailto:bob@corp.cn",
        "www.docs.example is a.www.b, news:comp.lang, x.ws:a, https:// and 'https://'",
        "https://corp.example\nhttps://corp.example, (https://corp.example) 'https://corp.example'",
        "ratio 3:4 at 10:30, https: is a scheme, notes://x, urn:isbn:1, x = y",
    ],
)
def test_what_leads_to_none_or_to_a_listed_one_stays(text: str) -> None:
    assert inert(text) == text


def test_each_is_counted_and_the_rest_stays_byte_for_byte() -> None:
    body = b'{"content": [ {"type":"text","text":"https:\\/\\/a.example b"} ], "n": 1.0}'

    done = clean(body, RULES)

    assert done.found == {"link": 1}
    assert done.body == body.replace(b"https:\\/\\/a.example", b"hxxps://a[.]example")
