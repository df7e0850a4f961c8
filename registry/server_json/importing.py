"""Registers servers by a server.json, and keeps where it came from.

Nothing is published by it: what the server offers waits for the ordinary review.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.core import signing
from django.db import transaction
from django.utils import timezone

from accounts.actors import By, acting
from accounts.models import User
from audit.services import record
from core.english import gettext as _
from core.guarded_http import is_inside
from registry import services
from registry.models import Server, ServerOrigin
from registry.server_json import document, foreign_registry, signatures
from registry.server_json.document import (
    Json,
    Package,
    Remote,
    ServerJson,
    ServerJsonRefused,
    split_url,
)
from registry.server_json.filling import fill_remote
from registry.server_json.signatures import Signature, SignatureRefused

SALT = "server.json to import"
# Between reading it and registering.
GOOD_FOR_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class ImportedDocument:
    """A server.json, the registry that gave it ("": pasted) and what that says of it."""

    server: ServerJson
    registry: str = ""
    status: str = ""
    published_at: str = ""
    # Of the very bytes that were given; "": a registry's answer has others.
    file_digest: str = ""
    signature: Signature | None = None

    def sealed(self) -> str:
        """For a form, which nobody can fill with another document and this registry's name."""
        about = [self.server.body, self.registry, self.status, self.published_at]
        signed = [self.file_digest, self.signature and self.signature._asdict()]
        return signing.dumps([*about, *signed], salt=SALT, compress=True)


def open_sealed(sealed: str) -> ImportedDocument:
    """Raises ServerJsonRefused."""
    try:
        body, *about, signed = signing.loads(sealed, salt=SALT, max_age=GOOD_FOR_S)
    except signing.BadSignature as error:
        raise ServerJsonRefused(_("This page is too old. Read the document again.")) from error
    signature = Signature(**signed) if signed else None
    return replace(ImportedDocument(document.read(body), *about), signature=signature)


def read_pasted(text: bytes) -> ImportedDocument:
    """Raises ServerJsonRefused."""
    read = document.read(document.parse(text))
    return ImportedDocument(read, file_digest=signatures.digest_of(text))


def verify_signature(given: ImportedDocument, bundle: bytes) -> ImportedDocument:
    """With what a Sigstore bundle says of the document or of one of its packages. Raises
    SignatureRefused."""
    pinned = tuple(one.digest for one in given.server.packages if one.digest)
    signature = signatures.verify(bundle, document=given.file_digest, pinned=pinned)
    return replace(given, signature=signature)


def add_signature(origin: ServerOrigin, bundle: bytes, file: bytes = b"", *, by: By) -> None:
    """Verifies a bundle as `verify_later` does, and keeps it."""
    keep_signature(origin, verify_later(origin, bundle, file), by=by)


def verify_later(origin: ServerOrigin, bundle: bytes, file: bytes = b"") -> Signature:
    """`file`: the server.json as it was signed. Raises ServerJsonRefused."""
    if origin.is_moved:
        raise SignatureRefused(_("The server is at another address than at its import."))
    if file and document.read(document.parse(file)).digest != origin.digest:
        raise SignatureRefused(_("The file differs from the server.json that was imported."))
    signed = signatures.digest_of(file) if file else ""
    pinned = document.pinned_digest(origin.package)
    return signatures.verify(bundle, document=signed, pinned=(pinned,) if pinned else ())


def remove_signature(origin: ServerOrigin, *, by: By) -> None:
    with transaction.atomic():
        locked = ServerOrigin.objects.select_for_update().get(pk=origin.pk)
        if not (known := locked.signature):
            return
        locked.signature = None
        locked.save(update_fields=["signature"])
        record(
            "server.signature_removed",
            actor=acting(by),
            server=origin.server.slug,
            identity=known["identity"],
            issuer=known["issuer"],
            digest=known["digest"],
            document=known["of"],
        )


def fetch_server(registry: str, name: str, version: str = "latest") -> ImportedDocument:
    """Raises ServerJsonRefused."""
    base = foreign_registry.base_of(registry)
    answer = foreign_registry.get_server(base, name, version)
    server = document.read(answer.body)
    return ImportedDocument(server, base, answer.status, answer.published_at)


@transaction.atomic
def register_remote(
    slug: str,
    given: ImportedDocument,
    remote: Remote,
    values: Mapping[str, str],
    *,
    owner: User,
    by: By,
    title: str = "",
) -> Server:
    """Raises ServerJsonRefused, RegistrationRefused, NameRefused and SecretRefused."""
    if remote.problem:
        raise ServerJsonRefused(remote.problem)
    url, headers = fill_remote(remote, values)
    _check_reach(url, given.registry)
    made = services.register(
        slug,
        transport=Server.Transport.HTTP,
        url=url,
        headers=headers,
        title=title or given.server.title or given.server.name,
        owner=owner,
        by=by,
    )
    _keep_origin(made, given, {}, by)
    return made


@transaction.atomic
def register_package(
    slug: str,
    given: ImportedDocument,
    package: Package,
    command: str,
    *,
    owner: User,
    by: By,
    title: str = "",
) -> Server:
    """Run by a command of the host's catalogue, which its administrator wrote."""
    if package.problem:
        raise ServerJsonRefused(package.problem)
    made = services.register(
        slug,
        transport=Server.Transport.STDIO,
        command=command,
        title=title or given.server.title or given.server.name,
        owner=owner,
        by=by,
    )
    _keep_origin(made, given, package.body, by)
    return made


def command_line(package: Package) -> Json:
    """An entry for the host's catalogue of commands; <…> is for its administrator to fill."""
    program = _PROGRAMS.get(package.kind)
    if program is None:
        return {}
    arguments = _arguments(package.body.get("packageArguments"))
    argv = [*program(package), *arguments]
    named = package.body.get("environmentVariables")
    env = {
        str(one.get("name", "")): _shown_value(one)
        for one in (named if isinstance(named, list) else [])
        if isinstance(one, dict)
    }
    return {"argv": argv} | ({"env": env} if env else {})


def names_package(argv: list[str], package: Json) -> bool:
    """A command's line has the package in this very version."""
    wanted = _pinned_words(str(package.get("identifier", "")), str(package.get("version", "")))
    return any(word in wanted for word in argv)


def _pinned_words(identifier: str, version: str) -> set[str]:
    if not version:
        return {identifier}
    return {f"{identifier}{mark}{version}" for mark in ("@", "==", ":")}


def _npm(package: Package) -> list[str]:
    version = f"@{package.version}" if package.version else ""
    return ["/usr/bin/npx", "-y", package.identifier + version]


def _pypi(package: Package) -> list[str]:
    version = f"=={package.version}" if package.version else ""
    return ["/usr/bin/uvx", package.identifier + version]


def _oci(package: Package) -> list[str]:
    return ["/usr/bin/docker", "run", "--rm", "-i", package.identifier]


_PROGRAMS = {"npm": _npm, "pypi": _pypi, "oci": _oci}


def _arguments(listed: Any) -> list[str]:
    words = []
    for one in listed if isinstance(listed, list) else []:
        if isinstance(one, dict):
            flag = one.get("name") if one.get("type") == "named" else None
            words += [str(flag)] if flag else []
            words.append(_shown_value(one))
    return words


def _shown_value(one: Json) -> str:
    """The publisher's value; secrets, and what has no value, are named."""
    name = one.get("name") or one.get("valueHint") or "value"
    found = one.get("value") or one.get("default")
    return f"<{name}>" if one.get("isSecret") is True or not found else str(found)


def _check_reach(url: str, registry: str) -> None:
    """A registry at a public address names public addresses alone."""
    if registry and is_inside(url) and not is_inside(registry):
        said = _(
            "%s leads into one of your own networks, and the registry is outside of them. "
            "If it is the right server, register it by its URL."
        )
        raise ServerJsonRefused(said % (split_url(url).hostname or ""))


def _keep_origin(server: Server, given: ImportedDocument, package: Json, by: By) -> None:
    _check_signature(given, package)
    read = given.server
    origin = ServerOrigin.objects.create(
        server=server,
        name=read.name,
        version=read.version,
        body=read.body,
        digest=read.digest,
        registry=given.registry,
        status=given.status,
        published_at=given.published_at,
        fetched_at=timezone.now(),
        package=package,
        address=server.address,
    )
    record(
        "server.imported",
        actor=acting(by),
        server=server.slug,
        name=origin.name,
        version=origin.version,
        registry=origin.registry,
        digest=origin.digest,
    )
    if given.signature:
        keep_signature(origin, given.signature, by=by)


def _check_signature(given: ImportedDocument, package: Json) -> None:
    """One that is about a package which is not run here vouches for nothing."""
    known = (given.file_digest, document.pinned_digest(package))
    if given.signature and given.signature.digest not in known:
        raise SignatureRefused(_("The signature is about another package of the document."))


@transaction.atomic
def keep_signature(origin: ServerOrigin, signature: Signature, *, by: By) -> None:
    origin.signature = {**signature._asdict(), "of": origin.digest}
    origin.save(update_fields=["signature"])
    record(
        "server.signature_verified",
        actor=acting(by),
        server=origin.server.slug,
        identity=signature.identity,
        issuer=signature.issuer,
        digest=signature.digest,
        document=origin.digest,
    )
