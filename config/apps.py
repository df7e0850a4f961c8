from django.apps import AppConfig
from django.contrib.admin import apps as admin

from config.celery import app as celery_app

# Celery's application must exist wherever a task is sent from. It is made here and not in the
# package's __init__, so that `up` need not wait for Celery to import.
__all__ = ["ConfigConfig", "ConsoleAdminConfig", "celery_app"]


class ConfigConfig(AppConfig):
    name = "config"


class ConsoleAdminConfig(admin.AdminConfig):
    # That of `config` is the one above.
    default = False
    default_site = "config.admin_site.ConsoleAdminSite"
