"""Words of failed connections: the system's own, of which pages show a translation."""

import errno
import os
import ssl

from core.kept_english import gettext as _

_WORDS = {
    errno.ECONNREFUSED: _("Connection refused"),
    errno.ECONNRESET: _("Connection reset by peer"),
    errno.ECONNABORTED: _("Software caused connection abort"),
    errno.EPIPE: _("Broken pipe"),
    errno.EHOSTUNREACH: _("No route to host"),
    errno.EHOSTDOWN: _("Host is down"),
    errno.ENETUNREACH: _("Network is unreachable"),
    errno.ENETDOWN: _("Network is down"),
    errno.ETIMEDOUT: _("Connection timed out"),
    errno.EADDRNOTAVAIL: _("Cannot assign requested address"),
    errno.EACCES: _("Permission denied"),
    errno.ENOENT: _("No such file or directory"),
    errno.ENOEXEC: _("Exec format error"),
    errno.EMFILE: _("Too many open files"),
    errno.ENOMEM: _("Cannot allocate memory"),
}
# By OpenSSL's numbers (x509_vfy.h).
_CERTIFICATES = {
    7: _("its signature is not valid"),
    9: _("it is not valid yet"),
    10: _("it has expired"),
    18: _("it is self-signed"),
    19: _("a certificate in its chain is self-signed"),
    20: _("its issuer is not known here"),
    21: _("its chain of issuers is not complete"),
    62: _("host name mismatch"),
    64: _("IP address mismatch"),
}


def describe(number: int) -> str:
    return _WORDS.get(number) or os.strerror(number)


def describe_certificate(error: ssl.SSLCertVerificationError) -> str:
    return _CERTIFICATES.get(error.verify_code) or error.verify_message.rstrip(".")
