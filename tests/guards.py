"""`python -m tests.guards` writes core/guards.json anew, from a database made by migrations."""

import os

from tests.plugin import environment


def main() -> None:
    with environment():
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        import django

        django.setup()
        from core import guards

        definitions = guards.installed_definitions()
        guards.write(definitions)
        print(f"{len(definitions)} definitions")  # noqa: T201


if __name__ == "__main__":
    main()
