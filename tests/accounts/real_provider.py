"""oidc-provider, a provider of others, and somebody who signs in there with a plain browser."""

import html
import http.client
import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from jwt.algorithms import RSAAlgorithm

from tests.accounts.fake_provider import SigningKey
from tests.conformance.suite import node

HERE = Path(__file__).parent / "npm"
SECRET = "a secret of the client, for tests alone"
CLIENT = "countersign"
# Says provider.mjs of each sign-in.
STRENGTH = "urn:example:mfa"


@contextmanager
def running(
    public_url: str,
    people: dict[str, dict[str, Any]],
    *,
    slug: str = "company",
    port: int = 0,
    ahead_s: int = 0,
    others: Sequence[dict[str, Any]] = (),
) -> Iterator[str]:
    """Its issuer; each time it signs with a new key. `others`: further clients of it."""
    here = f"{public_url}/sign-in"
    client = {
        "client_id": CLIENT,
        "client_secret": SECRET,
        "redirect_uris": [f"{here}/with/{slug}/callback/"],
        "post_logout_redirect_uris": [f"{here}/"],
        "backchannel_logout_uri": f"{here}/with/{slug}/logout/",
        "backchannel_logout_session_required": True,
    }
    env = {"CLIENTS": json.dumps([client, *others]), "PEOPLE": json.dumps(people), "NO_COLOR": "1"}
    env |= {"KEYS": json.dumps([new_key()]), "PORT": str(port), "AHEAD_S": str(ahead_s)}
    process = subprocess.Popen(
        [node(), "provider.mjs"], cwd=HERE, env=env, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield str(json.loads(process.stdout.readline())["issuer"])
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def new_key() -> dict[str, Any]:
    key = SigningKey()
    private: dict[str, Any] = json.loads(RSAAlgorithm.to_jwk(key.private))
    # Those are what it may be used for, which the provider finds out itself.
    private.pop("key_ops")
    return private | {"kid": key.name, "use": "sig", "alg": "RS256"}


@dataclass
class PlainBrowser:
    """Follows redirects within one site, keeps cookies, and fills in forms."""

    cookies: dict[str, str] = field(default_factory=dict)

    def sign_in(self, url: str, name: str) -> str:
        """Where the provider sends the browser back to, once `name` signed in and agreed."""
        place, page = self.follow(url)
        while page is not None:
            place, page = self.submit(place, page, {"login": name, "password": "any"})
        return place

    def follow(self, url: str, form: dict[str, str] | None = None) -> tuple[str, str | None]:
        """The last page, or where another site begins."""
        home = urlsplit(url).netloc
        while urlsplit(url).netloc == home:
            status, there, page = self._ask(url, form)
            if status not in (302, 303):
                assert status == 200, page
                return url, page
            url, form = urljoin(url, there), None
        return url, None

    def submit(self, place: str, page: str, values: dict[str, str]) -> tuple[str, str | None]:
        """The page's form, as filled in as it came, with these values where it asks for them."""
        action = re.search(r'<form[^>]* action="([^"]+)"', page)
        assert action is not None, page
        form = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))
        form |= {name: value for name, value in values.items() if f'name="{name}"' in page}
        return self.follow(urljoin(place, html.unescape(action[1])), form)

    def _ask(self, url: str, form: dict[str, str] | None) -> tuple[int, str, str]:
        at = urlsplit(url)
        connection = http.client.HTTPConnection(at.netloc, timeout=20)
        headers = {"Cookie": "; ".join(f"{n}={v}" for n, v in self.cookies.items())}
        path = f"{at.path}?{at.query}" if at.query else at.path
        if form is None:
            connection.request("GET", path, headers=headers)
        else:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            connection.request("POST", path, urlencode(form), headers)
        answer = connection.getresponse()
        page = answer.read().decode()
        self._keep(answer.headers.get_all("Set-Cookie") or [])
        connection.close()
        return answer.status, answer.headers.get("Location", ""), page

    def _keep(self, said: list[str]) -> None:
        for text in said:
            for name, morsel in SimpleCookie(text).items():
                self.cookies[name] = morsel.value
