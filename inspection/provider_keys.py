"""Keys that say whose they are: by the letters that a provider puts before what is random."""

from __future__ import annotations

from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class ProviderKey(NamedTuple):
    kind: str
    label: str | Promise
    # What it begins with; after each of them comes `tail`.
    marks: tuple[str, ...]
    tail: str


_HEX = "[a-f0-9]"
_WORD = r"[A-Za-z0-9_\-]"
_BASE64 = "[A-Za-z0-9+/]"

PROVIDER_KEYS = (
    # Our own (accounts/tokens.py, accounts/agent_sign_in/access_tokens.py).
    ProviderKey(
        "countersign_token",
        _("Countersign token"),
        ("csa_", "css_", "csp_", "cso_"),
        r"[A-Za-z0-9_.~\-]{40,1300}",
    ),
    # Their lengths vary, as Atlassian says.
    ProviderKey(
        "atlassian_token",
        _("Atlassian token"),
        ("ATATT", "ATCTT", "ATSTT", "ATBB"),
        r"[A-Za-z0-9_\-=]{24,400}",
    ),
    ProviderKey("aws_key", _("Amazon Bedrock key"), ("ABSK",), _BASE64 + "{100,280}={0,2}"),
    ProviderKey(
        "gitlab_token",
        _("GitLab token"),
        ("glcbt-", "gloas-", "glsoat-", "glimt-", "glft-", "glffct-", "glagent-"),
        _WORD + "{20,80}",
    ),
    ProviderKey(
        "slack_token",
        _("Slack token"),
        ("xoxe-", "xoxe.xoxb-", "xoxe.xoxp-"),
        r"[A-Za-z0-9\-]{40,400}",
    ),
    ProviderKey("shopify_token", _("Shopify token"), ("shpca_", "shppa_"), "[a-fA-F0-9]{32}"),
    ProviderKey("digitalocean_token", _("DigitalOcean token"), ("dor_v1_",), _HEX + "{64}"),
    ProviderKey("square_token", _("Square token"), ("sq0atp-", "sq0csp-"), _WORD + "{22,60}"),
    ProviderKey("brevo_key", _("Brevo key"), ("xkeysib-",), _HEX + "{64}-[A-Za-z0-9]{16}"),
    ProviderKey("postman_key", _("Postman key"), ("PMAK-",), _HEX + "{24}-" + _HEX + "{34}"),
    ProviderKey("newrelic_key", _("New Relic key"), ("NRAK-", "NRII-"), r"[A-Za-z0-9\-]{27,32}"),
    ProviderKey("sentry_token", _("Sentry token"), ("sntryu_",), _HEX + "{64}"),
    ProviderKey(
        "sentry_token",
        _("Sentry token"),
        ("sntrys_eyJ",),
        _BASE64 + "{40,600}={0,2}_" + _BASE64 + "{43}",
    ),
    ProviderKey("rubygems_key", _("RubyGems key"), ("rubygems_",), _HEX + "{48}"),
    ProviderKey("pulumi_token", _("Pulumi token"), ("pul-",), _HEX + "{40}"),
    ProviderKey(
        "planetscale_token",
        _("PlanetScale token"),
        ("pscale_tkn_", "pscale_oauth_", "pscale_pw_"),
        r"[A-Za-z0-9_.\-=]{32,64}",
    ),
    ProviderKey(
        "fly_token", _("Fly.io token"), ("fm1r_", "fm1a_", "fm2_"), _BASE64 + "{100,2000}={0,3}"
    ),
    ProviderKey("heroku_key", _("Heroku key"), ("HRKU-AA",), _WORD + "{58}"),
    ProviderKey("openshift_token", _("OpenShift token"), ("sha256~",), _WORD + "{43}"),
    ProviderKey("artifactory_key", _("Artifactory key"), ("AKCp",), "[A-Za-z0-9]{69}"),
    ProviderKey(
        "onepassword_token", _("1Password token"), ("ops_eyJ",), _BASE64 + "{200,4000}={0,3}"
    ),
    ProviderKey("age_key", _("age key"), ("AGE-SECRET-KEY-1",), "[0-9A-Z]{58}"),
    ProviderKey("figma_token", _("Figma token"), ("figd_",), _WORD + "{40,64}"),
    ProviderKey("supabase_key", _("Supabase key"), ("sbp_",), _HEX + "{40}"),
    ProviderKey("supabase_key", _("Supabase key"), ("sb_secret_",), _WORD + "{24,64}"),
    ProviderKey("perplexity_key", _("Perplexity key"), ("pplx-",), "[A-Za-z0-9]{40,64}"),
    ProviderKey("replicate_token", _("Replicate token"), ("r8_",), "[A-Za-z0-9]{37}"),
    ProviderKey("nvidia_key", _("NVIDIA key"), ("nvapi-",), _WORD + "{56,80}"),
    ProviderKey("tavily_key", _("Tavily key"), ("tvly-",), _WORD + "{28,64}"),
    ProviderKey(
        "langsmith_key",
        _("LangSmith key"),
        ("lsv2_pt_", "lsv2_sk_"),
        _HEX + "{32}_" + _HEX + "{10}",
    ),
    ProviderKey("volcengine_key", _("Volcengine key"), ("AKLT",), "[A-Za-z0-9]{40,64}"),
    ProviderKey(
        "baidu_key", _("Baidu Cloud key"), ("bce-v3/",), "ALTAK-[A-Za-z0-9]{21}/" + _HEX + "{40}"
    ),
)
# Addresses by which whoever has them may post: of Microsoft Teams, Discord, Feishu, WeCom and
# Mattermost, whose secret has 26 letters and digits.
MATTERMOST = "/hooks/"
WEBHOOKS = (
    "webhook.office.com/webhookb2/",
    *("/api/webhooks/", "/api/v8/webhooks/", "/api/v9/webhooks/", "/api/v10/webhooks/"),
    "/open-apis/bot/v2/hook/",
    "/cgi-bin/webhook/send?key=",
    MATTERMOST,
)
WEBHOOK = (
    rf"(?:(?<!{MATTERMOST})|(?=[a-z0-9]{{26}}(?![A-Za-z0-9_\-])))"
    r"(?P<secret>[A-Za-z0-9_@/\-]{24,300})"
)
