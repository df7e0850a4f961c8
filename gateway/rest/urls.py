"""Mounted at /api/."""

from django.urls import path, re_path

from gateway.rest.api import Calls, Cancel, Explain, OneCall, Tools, ToolsetTools
from gateway.rest.approvals import Keys, OneApproval, StatementApprovals
from gateway.rest.problems import Nothing
from gateway.rest.registry_api import (
    NothingInRegistry,
    OneRegistryVersion,
    RegistryPublish,
    RegistryServers,
    RegistryStatus,
    RegistryVersions,
)
from gateway.rest.v1 import urls as v1
from gateway.rest.v1.document import OpenApi

app_name = "api"
# Servers' names have a slash, encoded or not; a slash at the end is no other address.
_REGISTRY = r"registry/(?P<slug>[\w-]{1,64})"
_SERVERS = _REGISTRY + r"/v0\.1/servers"
_SERVER = _SERVERS + r"/(?P<name>[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+)"
_VERSION = _SERVER + r"/versions/(?P<version>[^/]{1,255})"
registry = [
    re_path(rf"^{_SERVERS}/?$", RegistryServers.as_view(), name="registry_servers"),
    re_path(rf"^{_SERVER}/versions/?$", RegistryVersions.as_view(), name="registry_versions"),
    re_path(rf"^{_VERSION}/?$", OneRegistryVersion.as_view(), name="registry_version"),
    re_path(rf"^{_SERVER}/status/?$", RegistryStatus.as_view(), name="registry_status"),
    re_path(rf"^{_VERSION}/status/?$", RegistryStatus.as_view(), name="registry_version_status"),
    # The official publisher asks for v0.
    re_path(
        rf"^{_REGISTRY}/v0(?:\.1)?/publish/?$", RegistryPublish.as_view(), name="registry_publish"
    ),
    re_path(rf"^{_REGISTRY}(?:/.*)?$", NothingInRegistry.as_view(), name="registry_nothing"),
]
urlpatterns = [
    *registry,
    path("approvals", StatementApprovals.as_view(), name="approvals"),
    path("approvals/keys", Keys.as_view(), name="approval_keys"),
    path("approvals/<uuid:call_id>", OneApproval.as_view(), name="approval"),
    path("calls", Calls.as_view(), name="calls"),
    path("calls/<uuid:call_id>", OneCall.as_view(), name="call"),
    path("calls/<uuid:call_id>/cancel", Cancel.as_view(), name="cancel"),
    path("explain", Explain.as_view(), name="explain"),
    path("tools", Tools.as_view(), name="tools"),
    path("toolsets/<slug:slug>/tools", ToolsetTools.as_view(), name="toolset_tools"),
    path("v1/openapi.json", OpenApi.as_view(), name="openapi"),
    *v1.under("v1/"),
    re_path("", Nothing.as_view(), name="nothing"),
]
