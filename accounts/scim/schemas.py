"""The resources that SCIM serves here, and what the server says of itself. Source: RFC 7643.

Other attributes of the core schema are not kept; roles, entitlements and passwords are none that a
provider has a say about.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field
from scim2_models import (
    URN,
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    Email,
    ETag,
    Filter,
    Group,
    Mutability,
    Name,
    Patch,
    Reference,
    Required,
    Resource,
    Schema,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
    User,
)

# As many resources as one page of a list has at most.
PAGE_MAX = 200


class GroupMembership(ComplexAttribute):
    value: Annotated[str | None, Mutability.read_only, CaseExact.true] = None
    ref: Annotated[Reference[Group] | None, Mutability.read_only] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    display: Annotated[str | None, Mutability.read_only] = None


class UserResource(Resource[Any]):
    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    name: Name | None = None
    Name: ClassVar[type[ComplexAttribute]] = Name
    display_name: str | None = None
    active: bool | None = None
    emails: list[Email] | None = None
    Emails: ClassVar[type[ComplexAttribute]] = Email
    groups: Annotated[list[GroupMembership] | None, Mutability.read_only] = None
    Groups: ClassVar[type[ComplexAttribute]] = GroupMembership

    @classmethod
    def to_schema(cls) -> Schema:
        return _named("User", super().to_schema())


class GroupMember(ComplexAttribute):
    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    ref: Annotated[Reference[User[Any]] | None, Mutability.immutable] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    type: Annotated[str | None, Mutability.immutable] = Field(None, examples=["User"])


class GroupResource(Resource[Any]):
    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, Required.true] = None
    members: list[GroupMember] | None = None
    Members: ClassVar[type[ComplexAttribute]] = GroupMember

    @classmethod
    def to_schema(cls) -> Schema:
        return _named("Group", super().to_schema())


def _named(name: str, schema: Schema) -> Schema:
    return schema.model_copy(update={"name": name, "description": name})


CONFIG = ServiceProviderConfig(
    patch=Patch(supported=True),
    bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
    filter=Filter(supported=True, max_results=PAGE_MAX),
    change_password=ChangePassword(supported=False),
    sort=Sort(supported=False),
    etag=ETag(supported=True),
    authentication_schemes=[
        AuthenticationScheme(
            type=AuthenticationScheme.Type.oauthbearertoken,
            name="SCIM token",
            description="A bearer token that an administrator issued for this identity provider.",
            primary=True,
        )
    ],
)
# Providers send more than they need to, and Entra ID selects what is to be removed by a value.
POLICY = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)
SERVICE = ScimProvider(models=[UserResource, GroupResource], config=CONFIG, policy=POLICY)
