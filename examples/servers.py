"""The example servers, as `manage.py up` registers them. Starts nothing and does not import mcp."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class ExampleServer:
    slug: str
    title: str
    description: str
    # What follows the Python interpreter. Paths are absolute: any working folder will do.
    arguments: tuple[str, ...]
    transport: Literal["stdio"] = "stdio"

    @property
    def argv(self) -> list[str]:
        return [sys.executable, *self.arguments]


def example_servers(outbox: Path) -> list[ExampleServer]:
    """Every example server; those that write do so below `outbox` and nowhere else."""
    writes_to = ("--outbox", str(outbox.absolute()))
    return [
        _server("calculator", "Calculator", "Arithmetic, with clear errors."),
        _server(
            "text-analyser", "Text analyser", "Counts, readability and common words of a text."
        ),
        _server("code-search", "Code search", "Searches a folder of source text."),
        _server("weather", "Weather", "Climate and forecasts of a dozen cities, from a table."),
        _server(
            "documents", "Documents", "Indexes a folder of documents and finds what answers you."
        ),
        _server("reports", "Reports", "Writes passenger reports, slowly, and says how far it is."),
        _server("mailer", "Mailer", "Sends mail: one file a mail in the outbox.", *writes_to),
        _server(
            "file-writer", "File writer", "Writes and deletes files in the outbox.", *writes_to
        ),
        _server(
            "low-level", "Unit converter", "Lengths, masses and temperatures. Low-level style."
        ),
    ]


def _server(slug: str, title: str, description: str, *options: str) -> ExampleServer:
    file = HERE / f"{slug.replace('-', '_')}.py"
    return ExampleServer(slug, title, description, (str(file), *options))
