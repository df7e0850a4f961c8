"""An API becomes a server on a page: its document is read, and operations of it are chosen."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from registry.models import ApiDocument, Server, Tool
from registry.openapi.document import DocumentRefused, read
from registry.openapi.importing import register_api
from tests.console import scenery
from tests.console.test_server_imports import name_server
from tests.gateway.api_calls import CASES, document
from tests.upstreams.http_api import Answer, HttpApi

pytestmark = pytest.mark.django_db(transaction=True)

API = "http://127.0.0.1:9/v1"
REGISTER = "/new/api/"


@pytest.fixture
def api() -> Iterator[HttpApi]:
    with HttpApi(document()) as api:
        yield api


def register(client: Client, text: Any = None, **given: Any) -> Any:
    if text is not None:
        given["document"] = text if isinstance(text, str) else orjson.dumps(text).decode()
    return client.post(REGISTER, {"slug": "stable", "url": API, **given})


def operations(client: Client, **given: Any) -> Any:
    return client.post(reverse("registry:operations", args=["stable"]), given)


def test_a_pasted_document_shows_its_operations_and_offers_none(as_olga: Client) -> None:
    page = as_olga.get(register(as_olga, document()).url)

    assert "GET /pets/{id}" in page.text
    assert "It is at another address, https://other.example." in page.text
    assert "No parameter fills “id” of its path." in page.text
    assert "The reference #/components/parameters/None leads nowhere." in page.text
    assert "HEAD brings no content that an agent could read." in page.text
    assert not Tool.objects.exists()
    server = Server.objects.get()
    assert (server.url, server.transport, server.title) == (API, "api", "Stable")


def test_an_uploaded_yaml_file_is_read(as_olga: Client) -> None:
    file = SimpleUploadedFile("openapi.yaml", yaml.safe_dump(document()).encode())

    register(as_olga, document_file=file)

    assert len(ApiDocument.objects.get().coverage) == len(CASES) + 4


def test_a_document_is_fetched_and_its_own_address_is_used(as_olga: Client, api: HttpApi) -> None:
    register(as_olga, url="", document_url=f"{api.url}/openapi.json")

    assert Server.objects.get().url == api.url
    assert ApiDocument.objects.get().source == f"{api.url}/openapi.json"


def test_other_documents_are_fetched_only_by_permission(as_olga: Client, api: HttpApi) -> None:
    reference = {"$ref": f"{api.url}/openapi.json#/components/schemas/Hay"}
    whole = document()
    whole["paths"] = {
        "/hay": {
            "post": {
                "requestBody": {"content": {"application/json": {"schema": reference}}},
                "responses": {"204": {"description": "Done."}},
            }
        }
    }

    register(as_olga, whole)
    (row,) = ApiDocument.objects.get().coverage
    assert "which was not fetched" in row["problem"]
    assert api.received == []
    register(as_olga, whole, slug="other", external_references="on")

    (row,) = ApiDocument.objects.get(server__slug="other").coverage
    assert row["problem"] == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "The document is not JSON"),
        ({"swagger": "2.0"}, "This is Swagger 2.0"),
        ({"openapi": "3.2.0", "paths": {"/": {}}}, "of version 3.0 or 3.1"),
        ({"openapi": "3.0.0", "paths": {}}, "The document has no paths"),
        ({"openapi": "3.1.0", "paths": {"/a": {}}}, "The document has no operations."),
        ("a: &a [*a, *a]", "neither JSON nor YAML"),
        ("[" * 100_000, "The document is not JSON"),
    ],
)
def test_what_is_no_document_is_not_registered(as_olga: Client, text: Any, said: str) -> None:
    page = register(as_olga, text)

    assert said in page.text
    assert not Server.objects.exists()


@pytest.mark.long
def test_repeated_anchors_are_not_unfolded(as_olga: Client) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    page = register(as_olga, "\n".join(lines))

    assert "it repeats its anchors too often" in page.text


def test_an_address_inside_is_not_fetched(as_olga: Client, settings: Any) -> None:
    settings.UPSTREAM_NETWORKS = []

    page = register(as_olga, document_url="http://169.254.169.254/openapi.json")

    assert "is not public" in page.text
    assert not Server.objects.exists()


def test_chosen_operations_wait_for_review_and_the_choice_is_recorded(
    as_olga: Client,
) -> None:
    register(as_olga, document())

    answer = operations(
        as_olga,
        shown=["GET /pets", "POST /form", "GET /json"],
        chosen=["GET /pets", "POST /form"],
        **{"effect GET /pets": "reads", "effect POST /form": "destroys"},
    )

    assert answer.url == reverse("registry:review", args=["stable"])
    tools = {tool.name: tool for tool in Tool.objects.select_related("latest")}
    assert set(tools) == {"get_pets", "post_form"}
    assert {tool.state for tool in tools.values()} == {Tool.State.NEW}
    form = tools["post_form"].latest
    assert form is not None
    assert form.content["annotations"]["destructiveHint"] is True
    assert form.content["annotations"]["readOnlyHint"] is False
    assert "/form" in as_olga.get(answer.url).text
    entry = Entry.objects.get(action="server.operations_chosen")
    assert entry.details["added"] == ["GET /pets", "POST /form"]


@pytest.mark.long
def test_what_the_page_does_not_show_stays_chosen(as_olga: Client) -> None:
    register(as_olga, document())
    operations(as_olga, shown=["GET /pets"], chosen=["GET /pets"])

    operations(as_olga, shown=["GET /json"], chosen=["GET /json"])

    assert set(ApiDocument.objects.get().chosen) == {"GET /pets", "GET /json"}
    page = as_olga.get(reverse("registry:operations", args=["stable"]), {"state": "chosen"})
    assert "GET /pets" in page.text
    assert "GET /pets/{id}" not in page.text


@pytest.mark.long
@pytest.mark.parametrize("key", ["GET /elsewhere", "GET /none", "TRACE /pets"])
def test_what_cannot_be_a_tool_is_not_chosen(as_olga: Client, key: str) -> None:
    register(as_olga, document())

    page = as_olga.get(operations(as_olga, shown=[key], chosen=[key]).url)

    assert f"“{key}” is no operation that can be offered." in page.text
    assert ApiDocument.objects.get().chosen == {}


@pytest.mark.long
def test_another_document_keeps_names_and_says_what_is_new(as_olga: Client) -> None:
    register(as_olga, document())
    operations(as_olga, shown=["GET /pets"], chosen=["GET /pets"])
    changed = document()
    changed["paths"]["/pets"]["get"]["operationId"] = "list_all_pets"
    changed["paths"]["/new"] = {"get": {"responses": {"204": {"description": "Done."}}}}
    del changed["paths"]["/json"]

    there = reverse("registry:set_document", args=["stable"])
    answer: Any = as_olga.post(there, {"document": orjson.dumps(changed).decode()})

    assert "New operations: 1, gone: 1." in as_olga.get(answer.url).text
    assert Tool.objects.get().name == "get_pets"


def test_a_wrong_document_changes_nothing(as_olga: Client) -> None:
    register(as_olga, document())
    before = ApiDocument.objects.get().digest

    there = reverse("registry:set_document", args=["stable"])
    answer: Any = as_olga.post(there, {"document": "{}"})

    assert "This is no OpenAPI document" in as_olga.get(answer.url).text
    assert ApiDocument.objects.get().digest == before


def test_a_status_of_the_document_is_said(as_olga: Client, api: HttpApi) -> None:
    api.document["paths"]["/gone.json"] = {"get": {"responses": {"200": {}}}}
    api.answers["GET /gone.json"] = Answer(410)

    page = register(as_olga, document_url=f"{api.url}/gone.json")

    assert "answers with status 410" in page.text


@pytest.mark.parametrize("role", [Role.VIEWER, Role.APPROVER, Role.AUDITOR, Role.ADMINISTRATOR])
def test_only_operators_register_apis_and_choose(client: Client, olga: User, role: Role) -> None:
    client.force_login(olga)
    register(client, document())
    client.force_login(scenery.person("somebody", role))

    assert client.post(REGISTER).status_code == 403
    assert operations(client).status_code == 403
    assert client.post(reverse("registry:set_document", args=["stable"])).status_code == 403


def test_a_public_document_names_no_name_of_an_own_network(
    olga: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.UPSTREAM_NETWORKS = ["10.0.0.0/8"]
    names = {"api.example.com": ["10.9.8.7"], "docs.example.com": ["93.184.216.34"]}
    name_server(names, monkeypatch)
    body = {**document(), "servers": [{"url": "https://api.example.com/v1"}]}
    description = read(orjson.dumps(body), source="https://docs.example.com/openapi.json")

    with pytest.raises(DocumentRefused, match=r"api\.example\.com leads into"):
        register_api("stable", description, owner=olga, by=olga)
    assert not Server.objects.exists()

    register_api("stable", description, owner=olga, by=olga, url="https://api.example.com/v1")
