"""Agents without users: programs that prove who they are by a signed assertion.

Source: RFC 6749, 4.4; RFC 7521; RFC 7523, 2.2; draft-ietf-oauth-rfc7523bis.
"""
