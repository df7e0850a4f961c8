"""SQL of migrations, in files that an editor colours and a person reads."""

from pathlib import Path

from django.db import migrations

WATCH = """
CREATE TRIGGER configuration AFTER INSERT OR UPDATE OR DELETE ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION core_configuration_trigger()
"""
ROOT = Path(__file__).resolve().parent.parent


def run_file(name: str) -> migrations.RunSQL:
    """All statements of a file, such as "core/sql/configuration.sql"; never taken back.

    A file of functions holds them as they are today: a change of one is made there, and a new
    migration runs the file again.
    """
    return migrations.RunSQL((ROOT / name).read_text())


def watched(*tables: str) -> list[migrations.RunSQL]:
    """Their changes count as changes of configuration: for tables that have no model of their own,
    such as many-to-many ones."""
    return [migrations.RunSQL(WATCH.format(table=table)) for table in tables]


def in_months(table: str, key: str) -> migrations.RunSQL:
    """Migration operations that partition a table by month of its UUIDv7 (core/sql/months.sql)."""
    made = (ROOT / "core/sql/in_months.sql").read_text()
    return migrations.RunSQL(made.replace("TABLE_NAME", table).replace("KEY_NAME", key))
