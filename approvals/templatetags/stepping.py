from django import template

from accounts.models import User
from approvals import stepping
from approvals.models import Approval
from approvals.stepping import Step

register = template.Library()


@register.simple_tag
def step_up(approval: Approval, person: User) -> Step:
    """What this person's yes asks for beyond the session."""
    return stepping.step(approval, person)
