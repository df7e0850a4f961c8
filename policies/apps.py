from django.apps import AppConfig


class PoliciesConfig(AppConfig):
    name = "policies"

    def ready(self) -> None:
        # Models can only be imported once Django is ready.
        from policies.as_code import registry_sections, rule_sections, sections

        # What is written later may name what is written before.
        sections.register(
            registry_sections.SERVER_SECTION,
            registry_sections.TOOL_SECTION,
            registry_sections.TOOLSET_SECTION,
            rule_sections.RULE_SECTION,
            rule_sections.LIMIT_SECTION,
        )
