"""Reads and writes SCIM resources of one provider: others' are not there for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, models, transaction
from scim2_models import (
    ForbiddenException,
    InvalidValueException,
    Meta,
    NotFoundException,
    NotImplementedException,
    PreconditionFailedException,
    Resource,
    ResourceType,
    SearchRequest,
    UniquenessException,
)
from scim2_models.path import CompareOperator, Comparison, LogicalExpr, LogicalOperator
from scim2_server.storage import ScimStorage, SearchPage

from accounts.actors import AccountRefused
from accounts.models import ScimGroup, ScimUser
from accounts.oidc.identities import NotAdmitted
from accounts.scim import provisioning
from accounts.scim.provisioning import Conflict, GroupFields, Provisioner, UnknownMember, UserFields
from accounts.scim.schemas import GroupResource, UserResource
from core.text import is_storable

TEXT_MAX, ATTRIBUTES_MAX = 255, 20_000
# More rows than there can be; the database takes no larger offset than 2^63.
START_MAX = 2**31
# What a comparison of a filter reads from the database, where it asks for equality.
_COLUMNS = {
    "id": "pk",
    "externalid": "external_id",
    "username": "user_name__iexact",
    "displayname": "display_name__iexact",
}
Row = ScimUser | ScimGroup
_USER, _GROUP = str(UserResource.__schema__), str(GroupResource.__schema__)


class Storage(ScimStorage):
    def __init__(self, by: Provisioner, *, changes: bool) -> None:
        self._by, self._changes = by, changes

    @contextmanager
    def operation(self) -> Iterator[None]:
        with transaction.atomic():
            if self._changes:
                self._wait_for_turn()
            yield

    def _wait_for_turn(self) -> None:
        """A provider's changes are made one after the other: a role follows all groups of a user,
        and of two requests that read the same version one would be refused."""
        with connection.cursor() as cursor:
            lock = f"scim {self._by.provider.issuer}"
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [lock])

    def get(
        self, resource_type: ResourceType, resource_id: str, *, response_parameters: Any = None
    ) -> Resource[Any]:
        return _resource(self._one(resource_type, resource_id))

    def search(
        self,
        resource_types: list[ResourceType],
        search_request: SearchRequest[Any],
        *,
        position: Any = None,
    ) -> SearchPage:
        if len(resource_types) != 1:
            raise NotImplementedException(detail="Search users or groups, not both at once.")
        rows, asked = self._rows(resource_types[0]), search_request.filter
        start = min(search_request.start_index_0 or 0, START_MAX)
        count = search_request.count or 0
        if asked is None:
            page = rows[start : start + count]
            return SearchPage(rows.count(), [_resource(row) for row in page])
        narrowed = _narrowed(rows, asked.ast)
        found = [one for one in map(_resource, narrowed) if asked.match(one)]
        return SearchPage(len(found), found[start : start + count])

    def create(self, resource_type: ResourceType, resource: Resource[Any]) -> Resource[Any]:
        with _refusals():
            if isinstance(resource, UserResource):
                made: Row = provisioning.create_user(self._by, _user_fields(resource))
            else:
                made = provisioning.create_group(self._by, _group_fields(resource))
        return self.get(resource_type, str(made.pk))

    def update(
        self,
        resource_type: ResourceType,
        resource: Resource[Any],
        *,
        expected_version: str | None = None,
    ) -> Resource[Any]:
        row = self._locked(resource_type, str(resource.id), expected_version)
        with _refusals():
            if isinstance(row, ScimUser):
                provisioning.change_user(self._by, row, _user_fields(resource))
            else:
                provisioning.change_group(self._by, row, _group_fields(resource))
        return self.get(resource_type, str(row.pk))

    def delete(
        self, resource_type: ResourceType, resource_id: str, *, expected_version: str | None = None
    ) -> None:
        row = self._locked(resource_type, resource_id, expected_version)
        with _refusals():
            if isinstance(row, ScimUser):
                provisioning.delete_user(self._by, row)
            else:
                provisioning.delete_group(self._by, row)

    def _rows(self, resource_type: ResourceType) -> models.QuerySet[Any]:
        issuer = self._by.provider.issuer
        if resource_type.name == "User":
            there = ScimUser.objects.filter(issuer=issuer, deleted_at=None)
            return there.select_related("person").prefetch_related("groups")
        return ScimGroup.objects.filter(issuer=issuer).prefetch_related("members")

    def _one(self, resource_type: ResourceType, resource_id: str) -> Row:
        found = self._rows(resource_type).filter(pk=_uuid(resource_id)).first()
        if found is None:
            raise NotFoundException(detail=f"There is no such {resource_type.name}.")
        one: Row = found
        return one

    def _locked(
        self, resource_type: ResourceType, resource_id: str, expected_version: str | None
    ) -> Row:
        rows = self._rows(resource_type).filter(pk=_uuid(resource_id))
        list(rows.select_related(None).prefetch_related(None).select_for_update().values_list("pk"))
        # A statement of its own: one that waited for the lock sees joined rows as they were before.
        row = self._one(resource_type, resource_id)
        if expected_version is not None and expected_version != _version(row):
            raise PreconditionFailedException
        return row


class _refusals:
    """Turns what was refused into SCIM's errors."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Conflict):
            raise UniquenessException(detail=str(error)) from error
        if isinstance(error, IntegrityError):
            raise UniquenessException(detail="There is one with this name or id.") from error
        if isinstance(error, AccountRefused | NotAdmitted):
            raise ForbiddenException(detail=str(error)) from error
        if isinstance(error, UnknownMember):
            raise InvalidValueException(detail=str(error)) from error


def _narrowed(rows: models.QuerySet[Any], node: Any) -> models.QuerySet[Any]:
    """Leaves out what the filter cannot match, where the database can tell."""
    if isinstance(node, LogicalExpr) and node.op == LogicalOperator.and_:
        for term in node.terms:
            rows = _narrowed(rows, term)
    if not isinstance(node, Comparison) or node.op != CompareOperator.eq:
        return rows
    column = _COLUMNS.get(str(node.attr_path).rpartition(":")[2].casefold())
    if column is None or not isinstance(node.value, str):
        return rows
    # A filter may write it by escapes.
    if not is_storable(node.value):
        return rows.none()
    if column == "pk":
        return rows.filter(pk=_uuid(node.value))
    has_column = column.partition("__")[0] in {field.name for field in rows.model._meta.fields}
    return rows.filter(**{column: node.value}) if has_column else rows


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _version(row: Row) -> str:
    return f'W/"{row.version}"'


def _resource(row: Row) -> Resource[Any]:
    made = _user(row) if isinstance(row, ScimUser) else _group(row)
    made.id, made.external_id = str(row.pk), row.external_id or None
    made.meta = Meta(
        resource_type="User" if isinstance(row, ScimUser) else "Group",
        created=row.created_at,
        last_modified=row.changed_at,
        version=_version(row),
    )
    return made


def _user(row: ScimUser) -> UserResource:
    groups = [
        {"value": str(group.pk), "$ref": f"Groups/{group.pk}", "display": group.display_name}
        for group in row.groups.all()
    ]
    active = None if row.is_active is None else row.person.is_active
    said = {"userName": row.user_name, "active": active, "groups": groups or None}
    return UserResource.model_validate(row.attributes | said | {"schemas": [_USER]})


def _group(row: ScimGroup) -> GroupResource:
    members = [
        {"value": str(user.pk), "$ref": f"Users/{user.pk}", "type": "User"}
        for user in row.members.all()
    ]
    said = {"displayName": row.display_name, "members": members or None}
    return GroupResource.model_validate(said | {"schemas": [_GROUP]})


def _user_fields(resource: Any) -> UserFields:
    kept = resource.model_dump(
        mode="json", by_alias=True, exclude_none=True, include={"name", "display_name", "emails"}
    )
    if len(str(kept)) > ATTRIBUTES_MAX:
        raise InvalidValueException(detail="The attributes are too long.")
    _check_texts(_texts(kept))
    return UserFields(
        user_name=_name(resource.user_name),
        external_id=_text(resource.external_id),
        attributes=kept,
        is_active=resource.active,
    )


def _group_fields(resource: Any) -> GroupFields:
    ids = [_uuid(one.value or "") for one in resource.members or []]
    if None in ids:
        raise InvalidValueException(detail="A member's value is no id of a user.")
    return GroupFields(
        display_name=_name(resource.display_name),
        external_id=_text(resource.external_id),
        members=frozenset(one for one in ids if one is not None),
    )


def _name(value: str | None) -> str:
    text = _text(value)
    if not text.strip():
        raise InvalidValueException(detail="A user and a group have a name.")
    return text


def _text(value: str | None) -> str:
    text = value or ""
    if len(text) > TEXT_MAX:
        raise InvalidValueException(detail=f"A name or an id has at most {TEXT_MAX} characters.")
    _check_texts([text])
    return text


def _check_texts(texts: Iterable[str]) -> None:
    if not all(map(is_storable, texts)):
        raise InvalidValueException(detail="No text may hold NUL or half of a pair.")


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    for one in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from _texts(one)
