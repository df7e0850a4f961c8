"""One settings module; everything that differs between installations comes from the environment."""

from __future__ import annotations

import json
import os
import shlex
import sys
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from celery.schedules import crontab

from config.broker import broker, messages
from config.environment import (
    database_parts,
    level,
    networks,
    number,
    numbers,
    switch,
    whole,
)
from config.mail import mail_server, sender
from config.ports import parse_address
from config.secret import old_secret_keys, open_kept, secret_key
from config.secret_files import read_secret_files
from core import logs
from core.bad_setting import print_sentence_alone
from core.connections import KEEPALIVE, PAGES, DatabaseConnection

# For every process that is started without manage.py.
print_sentence_alone()
# Before anything else reads the environment.
read_secret_files(os.environ)

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(os.environ.get("COUNTERSIGN_DATA") or BASE_DIR / "var").resolve()


def _shared(name: str) -> dict[str, str]:
    """Settings of a running `manage.py up`, so that other commands work beside it."""
    try:
        return dict(json.loads((DATA_DIR / name).read_text()))
    except FileNotFoundError:
        return {}


SERVICES = _shared("services.json")


def service_url(name: str, default: str) -> str:
    return os.environ.get(name) or SERVICES.get(name) or default


def owner_url() -> str:
    """Read only where somebody runs a command beside `up`: its children have a DATABASE_URL, and
    know nothing of the owner's."""
    names = ("DATABASE_OWNER_URL", "DATABASE_DIRECT_URL", "DATABASE_URL")
    given = next((os.environ[name] for name in names if os.environ.get(name)), "")
    return given or _shared("owner.json").get("DATABASE_OWNER_URL") or DATABASE_URL


def direct_url() -> str:
    """PostgreSQL itself, where DATABASE_URL may lead to a pooler: it has to be of the same
    source."""
    given = os.environ if os.environ.get("DATABASE_URL") else SERVICES
    return given.get("DATABASE_DIRECT_URL") or DATABASE_URL


DATABASE_URL = service_url("DATABASE_URL", "postgresql:///countersign")
# Listeners, locks, the group commit and lookups of calls: what needs a session, or its options.
DATABASE_DIRECT_URL = direct_url()
IS_POOLED = DATABASE_DIRECT_URL != DATABASE_URL
DATABASE_OWNER_URL = owner_url()
REDIS_URL = service_url("REDIS_URL", "redis://127.0.0.1:6379/0")
# Of workers, where it is another one: RabbitMQ, or another Valkey.
BROKER_URL = service_url("BROKER_URL", "")
BROKER = broker(REDIS_URL)
MESSAGES = messages(BROKER_URL, BROKER)

SECRET_KEY = open_kept(os.environ.get("COUNTERSIGN_SECRET_KEY") or secret_key(DATA_DIR))
# Those before a rotation (`rotate_secret`). Not Django's SECRET_KEY_FALLBACKS: whoever knows an old
# secret could sign people in.
OLD_SECRET_KEYS = tuple(map(open_kept, old_secret_keys(DATA_DIR)))
# The key that signs checkpoints: only the sealer's environment names it.
_seal_key_file = os.environ.get("COUNTERSIGN_SEAL_KEY_FILE", "")
SEAL_KEY_FILE = Path(_seal_key_file) if _seal_key_file else None
DEBUG = switch("COUNTERSIGN_DEBUG")
PUBLIC_URL = service_url("COUNTERSIGN_PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/")
AGENT_URL = service_url("COUNTERSIGN_AGENT_URL", "http://127.0.0.1:8001").rstrip("/")
ALLOWED_HOSTS = [
    host
    for host in (os.environ.get("COUNTERSIGN_HOSTS") or "127.0.0.1,localhost,[::1]").split(",")
    if host
]
# Pages of other origins that may call the agents' endpoint; programs send no Origin at all.
AGENT_ORIGINS = [o for o in os.environ.get("COUNTERSIGN_AGENT_ORIGINS", "").split(",") if o]
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
CSRF_FAILURE_VIEW = "accounts.refusals.form_without_token"
# Whose word about a client's address counts (core/client_address.py), as CIDRs: nobody's.
TRUSTED_PROXIES = [
    ip_network(text)
    for text in networks(
        "COUNTERSIGN_TRUSTED_PROXIES", os.environ.get("COUNTERSIGN_TRUSTED_PROXIES", "")
    )
]

# daphne is no application here: it would only change runserver, and cost every process 0.5 s.
INSTALLED_APPS = [
    "config",
    "core",
    "audit",
    "accounts",
    "registry",
    "policies",
    "calls",
    "approvals",
    "notifications",
    "gateway",
    "config.apps.ConsoleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "channels",
    "django_celery_beat",
    "django_htmx",
    "pgtrigger",
    "rest_framework",
    "template_partials",
    "csp",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "config.static_files.StaticFilesMiddleware",
    "config.static_files.PackedPagesMiddleware",
    "csp.middleware.CSPMiddleware",
    "accounts.session_cookies.SessionCookieMiddleware",
    "config.language.LanguageMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "config.targets.TargetMiddleware",
    "config.managed_pages.ManagedPagesMiddleware",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "approvals.context.undone",
                "audit.demo.mark_pages",
            ],
        },
    }
]


def _database(name: str, url: str, **options: Any) -> dict[str, Any]:
    parts = database_parts(name, url)
    return {
        "ENGINE": "core.postgresql",
        "NAME": parts.pop("dbname", ""),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": str(parts.pop("port", "")),
        "CONN_MAX_AGE": 0,
        "OPTIONS": {**parts, **options},
    }


DATABASES = {
    "default": _database(
        "DATABASE_URL",
        DATABASE_URL,
        # Waited for again and again, as long as the database answers others.
        pool={
            "min_size": 0,
            "max_size": 10,
            "timeout": 0.4,
            "connection_class": DatabaseConnection,
        },
        **KEEPALIVE,
        # A pooler passes on none: its role has them (config/session_check.py).
        **({} if IS_POOLED else {"options": PAGES}),
    )
    # A cursor of the server's lives in one session.
    | {"DISABLE_SERVER_SIDE_CURSORS": IS_POOLED},
    # Migrations and grants run as the owner: `migrate --database owner`.
    "owner": _database("DATABASE_OWNER_URL", DATABASE_OWNER_URL),
}
# A database that answers nobody for so long is away, and who waits for it is told so.
DATABASE_SILENT_S = number("COUNTERSIGN_DATABASE_SILENT_S", "1.5", above=0)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
APP_ROLE = database_parts("DATABASE_URL", DATABASE_URL).get("user") or ""
# Who seals the record (docs/en/concepts/security-model.md); else the application's role.
SEAL_ROLE = service_url("COUNTERSIGN_SEAL_ROLE", "")
# Whom `prepare` gives the rights that `manage.py maintain` needs, and takes them from others.
MAINTENANCE_ROLE = (
    database_parts("DATABASE_MAINTENANCE_URL", os.environ.get("DATABASE_MAINTENANCE_URL", "")).get(
        "user"
    )
    or ""
)

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["accounts.backend.Backend"]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    *(
        {"NAME": f"django.contrib.auth.password_validation.{name}"}
        for name in (
            "UserAttributeSimilarityValidator",
            "MinimumLengthValidator",
            "CommonPasswordValidator",
            "NumericPasswordValidator",
        )
    ),
    {"NAME": "accounts.passwords.StrengthValidator"},
]
LOGIN_URL = "accounts:sign_in"
SET_UP_FACTOR_URL = "accounts:set_up_factor"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "accounts:sign_in"
SESSION_ENGINE = "accounts.session_store"
# A session ends when it was not used for so long, and so long after its sign-in.
SESSION_IDLE_S = number("COUNTERSIGN_SESSION_IDLE_S", str(4 * 3600), above=0)
SESSION_MAX_S = number("COUNTERSIGN_SESSION_MAX_S", str(12 * 3600), above=0)
SESSION_COOKIE_AGE = int(SESSION_MAX_S)
# Of the link in a mail, in seconds.
PASSWORD_RESET_TIMEOUT = 1800
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_URL.startswith("https://")
SECURE_HSTS_SECONDS = 365 * 86400 if PUBLIC_URL.startswith("https://") else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

LANGUAGE_CODE = "en"
# Offered as long as every sentence is translated (tests/core/test_messages.py).
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "config.static_files.HashedStorage"},
}
WHITENOISE_USE_FINDERS = True
WHITENOISE_MIMETYPES = {".webmanifest": "application/manifest+json"}
WHITENOISE_AUTOREFRESH = DEBUG

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": BROKER.hosts, "prefix": "countersign"},
    }
}

CELERY_BROKER_URL = MESSAGES.url
CELERY_BROKER_USE_SSL = MESSAGES.tls
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONSUMER = "config.consumer:Consumer"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
CELERY_BROKER_TRANSPORT_OPTIONS = MESSAGES.options
CELERY_BEAT_SCHEDULER = "config.beat:TickingScheduler"
CELERY_BEAT_SCHEDULE = {
    "remove ended sessions": {"task": "accounts.remove_ended_sessions", "schedule": 3600.0},
    "remove used proofs": {"task": "accounts.remove_used_proofs", "schedule": 300.0},
    "remove ended sign-ins": {"task": "accounts.remove_ended_sign_ins", "schedule": 3600.0},
    "read on-call calendars": {"task": "notifications.read_calendars", "schedule": 60.0},
    "tell expiring tokens": {"task": "notifications.tell_expiring_tokens", "schedule": 3600.0},
    "tell the workload": {
        "task": "notifications.tell_workload",
        # At full hours, also of Monday 06:00; other runs only tell a week that was missed.
        "schedule": crontab(minute="0"),
    },
    "remove old deliveries": {"task": "notifications.remove_old", "schedule": 3600.0},
    "look at every server": {"task": "registry.discover_all", "schedule": 600.0},
    "inspect stored definitions anew": {"task": "registry.renew_findings", "schedule": 300.0},
    "remove credentials of users who left": {
        "task": "registry.remove_credentials",
        "schedule": 10.0,
    },
    "list what registries serve": {"task": "registry.refresh_registries", "schedule": 30.0},
    "measure tools": {"task": "calls.measure", "schedule": 60.0},
    "watch unusual use": {"task": "policies.watch_unusual", "schedule": 60.0},
    "run saved cases": {"task": "gateway.run_cases", "schedule": 60.0},
    "remove answered requests": {
        "task": "gateway.remove_answered_requests",
        "schedule": 3600.0,
    },
    "remove old card views": {"task": "approvals.remove_old_card_views", "schedule": 86400.0},
    "erase what is past its retention": {"task": "approvals.erase_due", "schedule": 60.0},
    "remove old exports": {"task": "audit.remove_old_exports", "schedule": 3600.0},
    "expire large results": {"task": "calls.expire_results", "schedule": 3600.0},
}

# Where mail goes (docs/en/guides/notifications.md): without a server, into files.
EMAIL_URL = os.environ.get("EMAIL_URL", "")
EMAIL_FILE_PATH = DATA_DIR / "mail"
EMAIL_TIMEOUT = 10
EMAIL_BACKEND, EMAIL_HOST, EMAIL_PORT, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD, *_encrypted = (
    mail_server(EMAIL_URL)
)
EMAIL_USE_TLS, EMAIL_USE_SSL = _encrypted
DEFAULT_FROM_EMAIL = sender(os.environ.get("COUNTERSIGN_EMAIL_FROM", "")) or (
    f"Countersign <countersign@{urlsplit(PUBLIC_URL).hostname or 'localhost'}>"
)

# Hosts of the push services of Chrome, Firefox, Safari and Edge. Without any, nobody has pushes.
PUSH_SERVICES = (
    "fcm.googleapis.com,*.push.services.mozilla.com,*.push.apple.com,*.notify.windows.com"
)
_hosts = os.environ.get("COUNTERSIGN_PUSH_HOSTS", PUSH_SERVICES).split(",")
PUSH_HOSTS = [host.strip() for host in _hosts if host.strip()]

# Where Slack apps send to; GovSlack has another address.
SLACK_API_URL = (os.environ.get("COUNTERSIGN_SLACK_API_URL") or "https://slack.com/api").rstrip("/")

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.authentication.AgentTokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "UNAUTHENTICATED_USER": None,
    # As Django's forms call it (gateway/rest/problems.py).
    "NON_FIELD_ERRORS_KEY": "__all__",
    # `?format=` is a question of our own: there is one renderer.
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Countersign",
    "DESCRIPTION": "The API of service accounts: docs/en/reference/api.md",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    # What is sent and what is answered differ by fields that only one of them has.
    "COMPONENT_SPLIT_REQUEST": True,
    # Each member has its own values; enumerations have no names for others to keep.
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "POSTPROCESSING_HOOKS": [],
}

DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

# Private networks where documents of agents' clients may be, as CIDRs; and whether clients may
# register themselves (docs/en/guides/agent-sign-in.md).
CLIENT_NETWORKS = networks(
    "COUNTERSIGN_CLIENT_NETWORKS", os.environ.get("COUNTERSIGN_CLIENT_NETWORKS", "")
)
# Schemes of their apps, beside those of accounts/agent_sign_in/redirects.py.
CLIENT_SCHEMES = frozenset(
    scheme for scheme in os.environ.get("COUNTERSIGN_CLIENT_SCHEMES", "").split(",") if scheme
) - {"about", "blob", "data", "file", "filesystem", "http", "https", "javascript", "vbscript"}
CLIENT_REGISTRATION = switch("COUNTERSIGN_CLIENT_REGISTRATION")
# Of one address in an hour: an office may share one.
CLIENT_REGISTRATIONS = whole("COUNTERSIGN_CLIENT_REGISTRATIONS", "100")
# Where servers may be besides public addresses, as CIDRs: an operator's word, never a server's.
UPSTREAM_NETWORKS = networks(
    "COUNTERSIGN_UPSTREAM_NETWORKS", service_url("COUNTERSIGN_UPSTREAM_NETWORKS", "")
)
# Whether two people confirm a plan of a policy file (approvals/policy_plans/).
POLICY_NEEDS_TWO = switch("COUNTERSIGN_POLICY_NEEDS_TWO")
# A program that looks at new definitions too: words as a shell would split them, but no shell.
SCANNER = shlex.split(os.environ.get("COUNTERSIGN_SCANNER", ""))
SCANNER_TIMEOUT_S = number("COUNTERSIGN_SCANNER_TIMEOUT_S", "60", above=0)
RED_NEEDS_TWO = switch("COUNTERSIGN_RED_NEEDS_TWO")
PUBLISH_ON_DISCOVERY = switch("COUNTERSIGN_PUBLISH_ON_DISCOVERY")
# The host's catalogue of commands that stdio servers may run: a JSON file that only the host's
# administrator writes. A command that is not in it never starts.
STDIO_CATALOGUE = Path(os.environ.get("COUNTERSIGN_STDIO_CATALOGUE") or DATA_DIR / "stdio.json")
# The server of statements (gateway/statements), which every installation may register as a command.
STATEMENTS_ARGV = [sys.executable, str(BASE_DIR / "gateway" / "statements" / "server.py")]
BUILT_IN_COMMANDS = {"statements": {"argv": STATEMENTS_ARGV, "title": "Statements"}}

# The trusted root of Sigstore (JSON) by which signatures are verified; "": the one that the library
# ships.
SIGSTORE_TRUSTED_ROOT = os.environ.get("COUNTERSIGN_SIGSTORE_TRUSTED_ROOT", "")

# An endpoint in the dialect of OpenAI's embeddings, for the search over tools; "": words alone.
EMBEDDINGS_URL = os.environ.get("COUNTERSIGN_EMBEDDINGS_URL", "").rstrip("/")
EMBEDDINGS_MODEL = os.environ.get("COUNTERSIGN_EMBEDDINGS_MODEL", "")
EMBEDDINGS_KEY = os.environ.get("COUNTERSIGN_EMBEDDINGS_KEY", "")

# The identity providers with which people sign in: a file in TOML or JSON that only the host's
# administrator writes (accounts/oidc/providers.py).
OIDC_FILE = Path(os.environ.get("COUNTERSIGN_OIDC_FILE") or DATA_DIR / "oidc.toml")

# Whether passwords and passkeys sign in, and links that people make; links that are made at the
# host do so in any case.
LOCAL_SIGN_IN = switch("COUNTERSIGN_LOCAL_SIGN_IN", "1")

# Where checkpoints of the record are kept besides the database: best on another disk or host.
ANCHOR_FILE = Path(os.environ.get("COUNTERSIGN_ANCHOR_FILE") or DATA_DIR / "checkpoints")

# What was erased, for restores of older backups: best on another disk or host, and in no backup.
ERASURE_LEDGER = Path(os.environ.get("COUNTERSIGN_ERASURE_LEDGER") or DATA_DIR / "erasures")

# A store that speaks like S3, for archives of months: its address and a key for it.
ARCHIVE_URL = os.environ.get("COUNTERSIGN_ARCHIVE_URL", "").rstrip("/")
ARCHIVE_REGION = os.environ.get("COUNTERSIGN_ARCHIVE_REGION") or "us-east-1"
ARCHIVE_ACCESS_KEY = os.environ.get("COUNTERSIGN_ARCHIVE_ACCESS_KEY", "")
ARCHIVE_SECRET_KEY = os.environ.get("COUNTERSIGN_ARCHIVE_SECRET_KEY", "")

# So long an invited account counts as its inviter's where two people are needed, unless somebody
# else confirms it (accounts/independence.py).
INVITE_DAYS = whole("COUNTERSIGN_INVITE_DAYS", "30")

# Whether somebody who is alone in a new installation decides on calls of their own agents.
SINGLE_PERSON = switch("COUNTERSIGN_SINGLE_PERSON", "1")

# Whether a second administrator, where there is one, confirms who becomes approver or
# administrator.
TWO_ADMINISTRATORS = switch("COUNTERSIGN_TWO_ADMINISTRATORS", "1")

DECIDE_WITHIN_S = whole("COUNTERSIGN_DECIDE_WITHIN_S", "3600")
START_WITHIN_S = whole("COUNTERSIGN_START_WITHIN_S", "900")
# Whether somebody with the right may let a pending call run alone (approvals/break_glass.py).
BREAK_GLASS = switch("COUNTERSIGN_BREAK_GLASS")
# So long whoever denied a call can take that back, before its agent is told; 0: not at all.
TAKE_BACK_S = min(60, whole("COUNTERSIGN_TAKE_BACK_S", "0"))
# What a server asks an agent in the middle of a call is answered within that time, or not at all.
ANSWER_WITHIN_S = number("COUNTERSIGN_ANSWER_WITHIN_S", "900")
HOLD_S = number("COUNTERSIGN_HOLD_S", "45")
# The first answer, where its client does not hear how far it is: some give up after 5 s.
FIRST_HOLD_S = number("COUNTERSIGN_FIRST_HOLD_S", "4")
# How many calls workers run at once for one agent, and on one server with its credential.
AGENT_LIMIT = whole("COUNTERSIGN_AGENT_LIMIT", "32")
SERVER_LIMIT = whole("COUNTERSIGN_SERVER_LIMIT", "64")
# How many may wait, for people or for a worker: of one agent, and of all.
AGENT_QUEUE = whole("COUNTERSIGN_AGENT_QUEUE", "200")
QUEUE = whole("COUNTERSIGN_QUEUE", "5000")
# What runs in a process that is asked to stop may take so long to end: less than supervisors wait.
STOP_WITHIN_S = number("COUNTERSIGN_STOP_WITHIN_S", "25")
# Connections that a process of the agents' endpoint serves at once; others get 503.
CONNECTIONS = whole("COUNTERSIGN_CONNECTIONS", "4096", least=1)
# The head of a request is waited for so long, by the console and by the agents' endpoint.
HEAD_WITHIN_S = number("COUNTERSIGN_HEAD_WITHIN_S", "10", above=0)
# A worker that takes no call for so long, while some wait, is replaced.
DEAF_AFTER_S = number("COUNTERSIGN_DEAF_AFTER_S", "30", above=0)
# How often the sealer seals what is new in the record.
SEAL_EVERY_S = number("COUNTERSIGN_SEAL_EVERY_S", "1")
# So long a call rests before its second attempt, and before its third; the last counts on.
RETRY_AFTER_S = numbers("COUNTERSIGN_RETRY_AFTER_S", "1,5")
LEASE_S = number("COUNTERSIGN_LEASE_S", "30", above=0)
# Results above 256 KB are kept for so long, and agents get more than so many bytes as links.
LARGE_RESULTS_DAYS = number("COUNTERSIGN_LARGE_RESULTS_DAYS", "30")
# As received, a result that was cleaned or blocked is kept so long; 0: not at all.
RECEIVED_RESULTS_DAYS = number("COUNTERSIGN_RECEIVED_RESULTS_DAYS", "7")
AGENT_RESULT_BYTES = whole("COUNTERSIGN_AGENT_RESULT_BYTES", str(1024 * 1024))
RESULT_MAX_BYTES = whole("COUNTERSIGN_RESULT_MAX_BYTES", str(8 * 1024 * 1024), least=1)

# An export that workers prepared is offered for so long; one user has so many at once, with so many
# bytes in all.
EXPORT_DAYS = number("COUNTERSIGN_EXPORT_DAYS", "7")
EXPORTS_PER_USER = whole("COUNTERSIGN_EXPORTS_PER_USER", "10")
EXPORT_BYTES = whole("COUNTERSIGN_EXPORT_BYTES", str(100 * 1024**3))

# What an agent read so lately counts for what it sends (policies/flow.py).
FLOW_WINDOW_S = number("COUNTERSIGN_FLOW_WINDOW_S", "3600")

# Who may read `/metrics`; empty: nobody, and there is none.
METRICS_TOKEN = os.environ.get("COUNTERSIGN_METRICS_TOKEN", "")

# Where traces and metrics go by OTLP over HTTP (config/telemetry.py); empty: nowhere.
OTLP_URL = os.environ.get("COUNTERSIGN_OTLP_URL", "").rstrip("/")

# Where worker, beat and sealer answer probes (config/probes.py): address and first port.
PROBES = parse_address(os.environ.get("COUNTERSIGN_PROBES", ""), setting="COUNTERSIGN_PROBES")

LOG_FORMAT = logs.style(os.environ.get("COUNTERSIGN_LOG_FORMAT", ""), terminal=sys.stderr.isatty())
# A line for each request, at level INFO (config/requests.py).
ACCESS_LOG = switch("COUNTERSIGN_ACCESS_LOG")
LOGGING = logs.configuration(style=LOG_FORMAT, level=level("COUNTERSIGN_LOG_LEVEL", "INFO"))
SILENCED_SYSTEM_CHECKS: list[str] = []
