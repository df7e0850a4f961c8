"""Settings of Celery and of the channel layer: of one URL for both, which names one server or those
that Sentinel watches, or of another one for Celery alone, which may name RabbitMQ."""

from __future__ import annotations

from ssl import CERT_REQUIRED
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

from core.bad_setting import BadSetting

SENTINEL = "redis+sentinel"
SENTINEL_PORT = 26379
# A machine that is gone answers nothing: the next Sentinel is asked, or the next server.
SILENT_S = 2.0
FORM = (
    "REDIS_URL has not the form "
    "redis+sentinel://user:password@host:26379,host:26379,host:26379/NAME/0, where NAME is what "
    "Sentinel calls the servers."
)
ONE_FORM = (
    "REDIS_URL has not the form redis://user:password@host:6379/0, or rediss:// for an encrypted "
    "connection. In the password, write / as %2F, # as %23, ? as %3F, @ as %40, : as %3A and % as "
    "%25."
)

RABBITMQ, ENCRYPTED = "amqp", "amqps"
VALKEY = ("redis", "rediss", SENTINEL)
NO_BROKER = (
    "BROKER_URL names neither RabbitMQ (amqp://user:password@host:5672/vhost, or amqps:// with "
    "port 5671) nor Valkey, as REDIS_URL does."
)


class BadBrokerUrl(BadSetting):
    """BROKER_URL or REDIS_URL cannot be used; never repeats the password in it."""


class Messages(NamedTuple):
    """Celery's settings of the server that carries messages for workers."""

    url: str
    options: dict[str, Any]
    tls: dict[str, Any] | None = None


class Broker(NamedTuple):
    """`hosts` for channels_redis, `url` and `options` for Celery."""

    hosts: list[Any]
    url: str
    options: dict[str, Any] = {}


def broker(url: str) -> Broker:
    """Raises BadBrokerUrl: without the error of which it is made, whose words may have a part of
    the password."""
    if url.startswith(f"{SENTINEL}:"):
        try:
            return _by_sentinel(url)
        except ValueError:
            raise BadBrokerUrl(FORM) from None
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in VALKEY and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise BadBrokerUrl(ONE_FORM)
    return Broker([url], url)


def messages(url: str, of_pages: Broker) -> Messages:
    """BROKER_URL names the server; where it is empty, workers have that of pages. Raises
    BadBrokerUrl."""
    parts = urlsplit(url)
    if parts.scheme == RABBITMQ:
        return Messages(url, {})
    if parts.scheme == ENCRYPTED:
        # Otherwise any host with a certificate would do.
        return Messages(url, {}, {"cert_reqs": CERT_REQUIRED, "server_hostname": parts.hostname})
    if url and parts.scheme not in VALKEY:
        raise BadBrokerUrl(NO_BROKER)
    found = broker(url) if url else of_pages
    # A message is only a doorbell. One that a worker had and did not come to need not ring again,
    # and a worker that tells a broker which it has lost that it came to it would end.
    return Messages(found.url, {"ack_emulation": False, **found.options})


def _by_sentinel(url: str) -> Broker:
    parts = urlsplit(url)
    login, _, places = parts.netloc.rpartition("@")
    user, _, password = (unquote(part) for part in login.partition(":"))
    master, _, number = unquote(parts.path).strip("/").partition("/")
    sentinels, db = [_address(place) for place in places.split(",")], int(number or 0)
    if not master:
        raise ValueError(master)
    known = {"username": user or None, "password": password or None}
    of_sentinels = _of_sentinels(parts.query)
    to_server: dict[str, Any] = {"db": db, "socket_connect_timeout": SILENT_S}
    to_server |= {name: value for name, value in known.items() if value}
    host = {
        "sentinels": sentinels,
        "master_name": master,
        "sentinel_kwargs": of_sentinels,
        **to_server,
    }
    options: dict[str, Any] = {"master_name": master, "sentinel_kwargs": of_sentinels}
    options |= {"socket_connect_timeout": SILENT_S, "retry_on_timeout": True}
    return Broker([host], _for_celery(sentinels, user, password, db), options)


def _address(place: str) -> tuple[str, int]:
    parts = urlsplit(f"//{place}")
    if not parts.hostname:
        raise ValueError(place)
    return parts.hostname, parts.port or SENTINEL_PORT


def _of_sentinels(query: str) -> dict[str, Any]:
    """Sentinel has logins apart from those of the servers that it watches."""
    given = parse_qs(query, strict_parsing=bool(query))
    if given.keys() - {"sentinel_user", "sentinel_password"}:
        raise ValueError(query)
    named = {"username": given.get("sentinel_user"), "password": given.get("sentinel_password")}
    login = {name: values[0] for name, values in named.items() if values}
    return {"socket_timeout": SILENT_S, "socket_connect_timeout": SILENT_S, **login}


def _for_celery(sentinels: list[tuple[str, int]], user: str, password: str, db: int) -> str:
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user or password else ""
    urls = (f"sentinel://{login}{_bracketed(host)}:{port}/{db}" for host, port in sentinels)
    return ";".join(urls)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
