"""Whose address counts where somebody signs in through proxies."""

from ipaddress import ip_network
from typing import Any

import pytest
from django.http import HttpRequest
from django.test import RequestFactory

from core.client_address import client_address

PROXIES = ["10.0.0.0/8", "2001:db8::/64"]


@pytest.fixture
def proxies(settings: Any) -> None:
    settings.TRUSTED_PROXIES = [ip_network(text) for text in PROXIES]


def request(peer: str, **headers: str) -> HttpRequest:
    return RequestFactory().get("/", REMOTE_ADDR=peer, headers=headers)


def test_without_the_setting_no_header_is_believed() -> None:
    told = {"X-Forwarded-For": "192.0.2.1", "Forwarded": "for=192.0.2.1"}

    assert client_address(request("127.0.0.1", **told)) == "127.0.0.1"


@pytest.mark.parametrize(
    ("peer", "told", "client"),
    [
        ("10.0.0.1", "192.0.2.1", "192.0.2.1"),
        # What the client invented stands before what the proxy saw.
        ("10.0.0.1", "198.51.100.9, 192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", "198.51.100.9, 192.0.2.1, 10.2.3.4", "192.0.2.1"),
        ("10.0.0.1", "192.0.2.1:4711", "192.0.2.1"),
        ("10.0.0.1", "[2001:db8:1::1]:4711", "2001:db8:1::1"),
        ("::ffff:10.0.0.1", "::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8:1::1", "2001:db8:1::1"),
        # Not a proxy of ours: its own address, whatever it says.
        ("192.0.2.7", "198.51.100.9", "192.0.2.7"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "192.0.2.1, unknown", "10.0.0.1"),
        ("10.0.0.1", "192.0.2.1, unknown, 10.2.3.4", "10.2.3.4"),
        ("10.0.0.1", "10.9.9.9, 10.2.3.4", "10.9.9.9"),
        ("", "192.0.2.1", ""),
    ],
)
def test_the_right_most_address_that_is_no_proxys(
    proxies: None, peer: str, told: str, client: str
) -> None:
    assert client_address(request(peer, **{"X-Forwarded-For": told})) == client


@pytest.mark.parametrize(
    ("told", "client"),
    [
        ("for=192.0.2.1", "192.0.2.1"),
        ('for=198.51.100.9, For="192.0.2.1:80";proto=https;by=10.0.0.1', "192.0.2.1"),
        ('proto=https;for="[2001:db8:1::1]:4711"', "2001:db8:1::1"),
        ("for=192.0.2.1, for=_hidden", "10.0.0.1"),
        ("by=192.0.2.1", "10.0.0.1"),
    ],
)
def test_the_standard_header_says_the_same(proxies: None, told: str, client: str) -> None:
    assert client_address(request("10.0.0.1", Forwarded=told)) == client


def test_two_headers_that_differ_are_both_not_believed(proxies: None) -> None:
    both = {"X-Forwarded-For": "192.0.2.1", "Forwarded": "for=198.51.100.9"}
    alike = {"X-Forwarded-For": "192.0.2.1", "Forwarded": "for=192.0.2.1"}

    assert client_address(request("10.0.0.1", **both)) == "10.0.0.1"
    assert client_address(request("10.0.0.1", **alike)) == "192.0.2.1"
