"""The manifest from which Slack makes the app. Source: docs.slack.dev, App manifest."""

from __future__ import annotations

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


def manifest() -> str:
    return MANIFEST.format(url=settings.PUBLIC_URL + reverse("notifications:slack"))
