"""Two servers that offer the same, one of which derives its schemas."""

from typing import Any

from tests.examples.running import Connection


def assert_same_tools(ours: Connection, theirs: Connection) -> None:
    found, derived = ours.tools(), theirs.tools()
    assert list(found) == list(derived)
    for name, tool in found.items():
        other = derived[name]
        assert (tool.title, tool.description) == (other.title, other.description)
        assert tool.annotations == other.annotations
        assert plain(tool.input_schema) == plain(other.input_schema)
        assert plain(tool.output_schema) == plain(other.output_schema)


def plain(schema: Any, definitions: Any = None) -> Any:
    """Without references, and without the titles that the SDK derives for each member."""
    if not isinstance(schema, dict):
        return schema
    definitions = schema.get("$defs", definitions)
    if "$ref" in schema:
        return plain(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return {
        key: plain(value, definitions)
        for key, value in schema.items()
        if key != "$defs"
        and (key != "title" or isinstance(value, dict))
        and not is_model(key, value)
    }


def is_model(key: str, value: Any) -> bool:
    """Docstrings of the SDK's own models."""
    return key == "description" and value == ""
