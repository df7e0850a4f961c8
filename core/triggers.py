"""Triggers that nobody can ask to look away.

django-pgtrigger's own functions first ask a session variable whether to be ignored; whoever
may run SQL may set it. Ours leave the question out.

They also name where they look: temporary tables, which whoever may run SQL can name like ours,
come last.
"""

from typing import Any

import pgtrigger
from django.db import models
from pgtrigger import compiler

SEARCH_PATH = "pg_catalog, public, pg_temp"


# For functions of ours, whoever made them; extensions keep theirs as they are.
EACH_FUNCTION = """
DO $$
DECLARE
    one regprocedure;
BEGIN
    FOR one IN
        SELECT p.oid FROM pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace AND NOT EXISTS (
            SELECT FROM pg_depend d
            WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = {search_path}', one);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO {role}', one);
    END LOOP;
END $$
"""


class StrictTriggerSql(compiler.UpsertTriggerSql):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # After pgtrigger has taken its hash, by which migrations know triggers.
        language = "LANGUAGE plpgsql"
        self.data = self.data.replace(
            f"$$ {language};", f"$$ {language} SET search_path = {SEARCH_PATH};"
        )

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


class Keep(StrictTrigger):
    """Columns that stay as they were first written."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Update

    def __init__(self, *, name: str, columns: list[str]) -> None:
        super().__init__(name=name)
        self.columns = columns

    def get_func(self, model: models.Model) -> str:
        new, old = (
            ", ".join(f"{row}.{column}" for column in self.columns) for row in ("NEW", "OLD")
        )
        return f"""
            IF ROW({new}) IS DISTINCT FROM ROW({old}) THEN
                RAISE EXCEPTION '{", ".join(self.columns)}: written once, never changed';
            END IF;
            RETURN NEW;
        """


class OnlyColumns(StrictTrigger):
    """All other columns than these stay as they were first written."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Update

    def __init__(self, *columns: str) -> None:
        super().__init__(name="only_columns")
        self.columns = columns

    def get_func(self, model: models.Model) -> str:
        names = ", ".join(f"'{column}'" for column in self.columns)
        new, old = (f"to_jsonb({row}) - ARRAY[{names}]" for row in ("NEW", "OLD"))
        return f"""
            IF {new} IS DISTINCT FROM {old} THEN
                RAISE EXCEPTION '{model._meta.db_table} rows are never changed or removed';
            END IF;
            RETURN NEW;
        """


class Configuration(StrictTrigger):
    """A change of this table counts in `core_generation`, which every process watches."""

    level = pgtrigger.Statement
    when = pgtrigger.After
    func = "PERFORM core_configuration_changed(); RETURN NULL;"


def append_only(updates: StrictTrigger | None = None) -> list[StrictTrigger]:
    """`updates`: lets some pass, in place of none."""
    return [
        updates or Refuse(name="no_update", operation=pgtrigger.Update),
        Refuse(name="no_delete", operation=pgtrigger.Delete),
        Refuse(name="no_truncate", operation=pgtrigger.Truncate),
    ]


def configuration(*columns: str) -> list[StrictTrigger]:
    """Watched for every insert and delete, and for updates of `columns` (all, if none named)."""
    update = pgtrigger.UpdateOf(*columns) if columns else pgtrigger.Update  # type: ignore[no-untyped-call]
    change = pgtrigger.Insert | pgtrigger.Delete | update
    return [Configuration(name="configuration", operation=change)]
