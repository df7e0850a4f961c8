"""Names and texts that a message shows to nobody: those that could be of a secret.

Wider than the detectors of results (inspection/secrets.py): there a word too much is missing from
an answer, here it is read on the page instead. So any doubt hides a value.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from unicodedata import normalize

from inspection import characters
from inspection.secret_names import is_value, kinds_of

# Anywhere in a name, written without what separates its words.
_STEMS = (
    *("passw", "passphrase", "passcode", "pwd", "secret", "credential", "apikey", "accesskey"),
    *("privatekey", "privkey", "signingkey", "secretkey", "encryptionkey"),
    *("seedphrase", "seedwords", "recoveryphrase", "backupcode", "助记词"),
    *("authoriz", "authoris", "cookie"),
    *("bearer", "sessionid", "sessid", "connectionstring", "recoverycode", "mnemonic"),
    *("passwort", "kennwort", "geheim", "zugangsdaten", "motdepasse", "contrasen", "contraseñ"),
    *("senha", "parola", "haslo", "hasło", "wachtwoord", "lösenord", "losenord", "salasana"),
    *("şifre", "sifre", "парол", "секрет", "токен", "密码", "密碼", "口令", "密钥", "密鑰", "金鑰"),
    *("令牌", "凭证", "凭据", "憑證", "验证码", "授权码", "パスワード", "暗証", "비밀번호", "암호"),
)
# One whole word of a name.
_WORDS = (
    *("pass", "pw", "pin", "otp", "totp", "cvv", "cvc", "csc", "auth", "session", "sessions"),
    *("creds", "mfa", "sid", "jwt", "sig", "sas", "pat", "psk", "hmac", "csrf", "xsrf", "会话"),
)
_ENDS = ("token", "pass")
_NO_PASS = ("bypass", "compass", "surpass", "trespass", "underpass", "overpass")
# Before `key`, of what anybody may read.
_OPEN_KEYS = ("primary", "foreign", "public", "sort", "partition", "issue", "object", "project")
_HUMP = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATOR = re.compile(r"[\W_]+|(?<=\D)\d+$")

# Texts are looked at so far: no message shows more of one.
LOOK_MAX = 2000
_NAME_MAX = 60
_ASSIGNED = re.compile(r"=>|[:：=]")
_VALUE = re.compile(r"[\s\"'\\>]*([^\s\"',;&\\]{3,})")
_FLAG = re.compile(r"(?<!\S)[\"']?--?([\w\-]{2,60})[\"']? +[\"']?[^\s\-\"'][^\s\"']{2,}")
_BASIC = re.compile(r"(?i)\bbasic\s+[\"']?([a-z0-9+/\-_]{6,}={0,2})")
# As environments and options have it: `DB_PASS=x`, without a space.
_TIGHT = re.compile(r"=(?=[^\s=\"'])")
_HARMLESS = re.compile(r"(?i)(?:true|false|yes|no|on|off|none|null|[01]|\W.*)\Z")
# The secret of an access key of AWS, which has no mark: forty characters of base64.
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9+/=._\-])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=._\-])")
_OPEN_TEXTS = re.compile(
    # A user and a password of a command, and passwords of MySQL and sshpass.
    r"(?<!\S)[\"']?(?:-[uU]|--(?:proxy-)?user)[\s=\"']*[^\s:\"'/]{1,100}:[^\s\"']{2,}"
    r"|\b(?:mysql|mariadb|mongo)\w*\s(?:[^|;]{0,200}\s)?-p\s*[^\s|;\-]\S{2,}"
    r"|\bsshpass\s+-p\s*\S{2,}|(?<!\S)-[uU]\s*\S{1,100}\s(?:[^|;]{0,100}\s)?-p\s*[^\s|;\-]\S+"
    r"|\bredis-cli\s(?:[^|;]{0,200}\s)?-a\s*\S{2,}|\bldap\w+\s(?:[^|;]{0,200}\s)?-w\s*\S{2,}"
    r"|\b(?:un)?zip\s(?:[^|;]{0,200}\s)?-P\s*\S{2,}"
    # Addresses that let anybody post who has them.
    r"|\bhooks\.slack(?:-gov)?\.com/\w+/\S{6,}|\bdiscord(?:app)?\.com/api/webhooks/\d"
    r"|\bapi\.telegram\.org/bot\d|\bopen\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/"
    r"|\.webhook\.office\.com/\S{6,}"
    # Calendars that anybody reads who has their address.
    r"|\bcalendar\.google\.com/calendar/ical/\S+/private-|\bicloud\.com/published/"
    r"|(?:https?|webcal)://\S{0,200}[/-](?=[a-z]{0,40}\d)[a-z0-9]{16,}\S{0,200}\.ics\b"
    r"|(?:https?|webcal)://\S{0,200}/private/\S{12,}|\bwebcal://\S{0,200}[a-z0-9]{16,}"
    # A signature or a key that such an address ends with.
    r"|[?&](?:key|signature|x-amz-signature|x-goog-signature)=[^\s&]{8,}",
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """However it is written: `x-api-key`, `DB_PASS`, `newPassword`, `密码`."""
    words = _words(name)
    return _has_stem(words) or any(
        word in _WORDS or (word.endswith(_ENDS) and word not in _NO_PASS) or _is_key(words, at)
        for at, word in enumerate(words)
    )


def is_surely_secret(name: str) -> bool:
    """Whether a part of the name names nothing else, in any text."""
    words = _words(name)
    return _has_stem(words) or any(word.endswith("token") for word in words)


def has_secret(text: str) -> bool:
    """Whether the text has a password, a key, or an address that is one, as far as it is shown."""
    seen = characters.plain(_without_unseen(" ".join(text.split())[: 2 * LOOK_MAX]))[:LOOK_MAX]
    return bool(
        _OPEN_TEXTS.search(seen)
        or any(_is_assigned(*one) for one in _assignments(seen))
        or any(map(_is_aws_secret, _AWS_SECRET.findall(seen)))
        or any(is_secret(flag) for flag in _FLAG.findall(seen))
        or any(map(_is_basic, _BASIC.findall(seen)))
    )


def _without_unseen(text: str) -> str:
    undisguised = characters.undisguised(text)
    return text if undisguised is None else undisguised.text


def _words(name: str) -> list[str]:
    parted = _HUMP.sub("_", normalize("NFKC", _without_unseen(name)))
    return [word for word in _SEPARATOR.sub("_", parted).casefold().split("_") if word]


def _has_stem(words: list[str]) -> bool:
    joined = "".join(words)
    return any(stem in joined for stem in _STEMS)


def _is_key(words: list[str], at: int) -> bool:
    return words[at] == "key" and at > 0 and words[at - 1] not in _OPEN_KEYS


def _assignments(text: str) -> Iterator[tuple[str, str, bool]]:
    """Names with the values that are assigned to them, each name to its end only, and whether they
    stand together without a space."""
    for sign in _ASSIGNED.finditer(text):
        before = text[max(0, sign.start() - _NAME_MAX) : sign.start()].rstrip(" \t\"'\\")
        if value := _VALUE.match(text, sign.end()):
            is_tight = not before.endswith(" ") and _TIGHT.match(text, sign.start())
            yield re.split(r"[^\w.\-]+", before)[-1], value[1], bool(is_tight)


def _is_assigned(name: str, value: str, is_tight: bool) -> bool:
    """A word that means other things too, such as `session`, is followed by more than a word, or
    is a part of a name that has nothing else: `DB_PASS=abc`."""
    bare = value.rstrip(".,;:!?)")
    looks_secret = not bare.isalpha() and is_value(bare)
    is_set = is_tight and "_" in name and not _HARMLESS.match(bare)
    return is_surely_secret(name) or (is_secret(name) and (looks_secret or is_set))


def _is_aws_secret(text: str) -> bool:
    """Digits among capital and small letters: no path, no digest, no name."""
    digits = sum(map(str.isdigit, text))
    return digits >= 3 and not text.isupper() and not text.islower() and kinds_of(text) >= 3


def _is_basic(text: str) -> bool:
    bare = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return b":" in base64.b64decode(bare + "=" * (-len(bare) % 4))
    except (binascii.Error, ValueError):
        return False
