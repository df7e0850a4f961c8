"""Triggers that nobody can ask to look away.

django-pgtrigger's own functions first ask a session variable whether to be ignored; whoever
may run SQL may set it. Ours leave the question out.
"""

from typing import Any

import pgtrigger
from django.db import models
from pgtrigger import compiler


class StrictTriggerSql(compiler.UpsertTriggerSql):
    def get_template(self) -> str:
        return """
            CREATE OR REPLACE FUNCTION {pgid}()
            RETURNS TRIGGER AS $$
                {declare}
                BEGIN
                    {func}
                END;
            $$ LANGUAGE plpgsql;

            DROP TRIGGER IF EXISTS {pgid} ON {table};
            CREATE {constraint} TRIGGER {pgid}
                {when} {operation} ON {table}
                {timing}
                {referencing}
                FOR EACH {level} {condition}
                EXECUTE PROCEDURE {execute};

            COMMENT ON TRIGGER {pgid} ON {table} IS '{hash}';
        """


class StrictTrigger(pgtrigger.Trigger):
    def compile(self, model: models.Model) -> compiler.Trigger:
        usual = super().compile(model)
        kwargs: dict[str, Any] = {**usual.sql.kwargs}
        kwargs.pop("ignore_func_name", None)
        return compiler.Trigger(name=self.name, sql=StrictTriggerSql(**kwargs))


class Refuse(StrictTrigger):
    """Refuses an operation outright, whoever asks."""

    level = pgtrigger.Statement
    when = pgtrigger.Before

    def get_func(self, model: models.Model) -> str:
        return f"RAISE EXCEPTION '{model._meta.db_table} rows are never changed or removed';"


class Configuration(StrictTrigger):
    """A change of this table counts in `core_generation`, which every process watches."""

    level = pgtrigger.Statement
    when = pgtrigger.After
    func = "PERFORM core_configuration_changed(); RETURN NULL;"


def append_only() -> list[StrictTrigger]:
    return [
        Refuse(name="no_update", operation=pgtrigger.Update),
        Refuse(name="no_delete", operation=pgtrigger.Delete),
        Refuse(name="no_truncate", operation=pgtrigger.Truncate),
    ]


def configuration(*columns: str) -> list[StrictTrigger]:
    """Watched for every insert and delete, and for updates of `columns` (all, if none named)."""
    update = pgtrigger.UpdateOf(*columns) if columns else pgtrigger.Update  # type: ignore[no-untyped-call]
    change = pgtrigger.Insert | pgtrigger.Delete | update
    return [Configuration(name="configuration", operation=change)]


def watch_tables(*tables: str) -> list[tuple[str, str]]:
    """(forwards, backwards) SQL for migrations: `Configuration` for many-to-many tables."""
    return [
        (
            f"CREATE TRIGGER configuration AFTER INSERT OR UPDATE OR DELETE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION core_configuration_trigger()",
            f"DROP TRIGGER configuration ON {table}",
        )
        for table in tables
    ]
