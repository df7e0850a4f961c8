"""Manifests from which Slack makes apps, and links that open Slack's form filled in with one.

Source: docs.slack.dev, App manifest (sharing manifests).
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

from django.conf import settings
from django.urls import reverse

MANIFEST = """\
display_information:
  name: Countersign
features:
  bot_user:
    display_name: Countersign
    always_online: false
  slash_commands:
    - command: /countersign
      url: {url}
      description: Link your Countersign account
      usage_hint: link CODE
      should_escape: false
oauth_config:
  scopes:
    bot:
      - chat:write
      - chat:write.public
      - commands
settings:
  interactivity:
    is_enabled: true
    request_url: {url}
  org_deploy_enabled: false
  socket_mode_enabled: false
  token_rotation_enabled: false
"""

# The simple form: Slack asks for the channel when the app is installed.
WEBHOOK_MANIFEST = """\
display_information:
  name: Countersign
features:
  bot_user:
    display_name: Countersign
    always_online: false
oauth_config:
  scopes:
    bot:
      - incoming-webhook
"""


def new_app_url(yaml: str) -> str:
    # With %20 for spaces, as in Slack's own links: a plus is one in forms alone.
    query = urlencode({"new_app": 1, "manifest_yaml": yaml}, quote_via=quote)
    return f"https://api.slack.com/apps?{query}"


def manifest() -> str:
    return MANIFEST.format(url=settings.PUBLIC_URL + reverse("notifications:slack"))
