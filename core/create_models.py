"""A migration operation that creates all tables of an app."""

from typing import Any

from django.db import migrations
from django.db.migrations.operations.base import Operation


class CreateModels(Operation):
    """Creates models together, which may refer to each other in any order.

    One at a time, Django renders all models that are related to a new one again, and nearly all of
    ours are.
    """

    reversible = False

    def __init__(self, *operations: migrations.CreateModel) -> None:
        self.operations = operations

    def state_forwards(self, app_label: str, state: Any) -> None:
        # Where nothing is rendered yet, adding a model renders nothing.
        state.__dict__.pop("apps", None)
        for operation in self.operations:
            operation.state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        for operation in self.operations:
            operation.database_forwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return f"Create {len(self.operations)} models"
