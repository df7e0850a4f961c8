"""Users that commands are given by name."""

from django.core.management.base import CommandError

from accounts.models import User


def find_person(username: str) -> User:
    """Raises CommandError where there is nobody of this name."""
    found = User.objects.filter(username=username).first()
    if found is None:
        raise CommandError(f"There is no person “{username}”.")
    return found
