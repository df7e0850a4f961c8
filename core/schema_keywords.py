"""Keywords of JSON Schema with schemas inside, of every draft from 4 to 2020-12.

In older drafts `items` may hold a list of schemas, and `dependencies` lists of names.
"""

ONE = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
MANY = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
NAMED = (
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
)
