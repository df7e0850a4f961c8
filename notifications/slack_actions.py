"""Acts of people from a message in Slack: deny and comment, never approve. Everything is checked
when they press, and again when they send what they wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from accounts.models import User
from approvals import comments, eligibility, services
from approvals.comments import CommentRefused
from approvals.models import Approval
from approvals.services import DecisionRefused
from audit.services import SYSTEM, record
from core.english import gettext as _
from core.errors import CountersignError
from notifications import chat_accounts, slack_secrets
from notifications.chat_accounts import SlackUser
from notifications.models import ChatAccount, Delivery, SlackApp
from notifications.slack_messages import is_step_up_asked


@dataclass(frozen=True, slots=True)
class SlackPress:
    """One press of a button, or the text that was sent after it, as Slack signed it."""

    user: SlackUser
    # Of the workspace where it was pressed, which in a shared channel may be another one.
    team_id: str
    act: str
    # What our message had in the button: the delivery, and the digest of the call.
    value: str
    # The message's channel and time; "" of a text.
    message: str = ""


class PressRefused(CountersignError):
    """Nothing is done; says why. `approval` is known once the press is of a message of ours."""

    def __init__(self, sentence: str, approval: Approval | None = None) -> None:
        super().__init__(sentence)
        self.approval = approval


@dataclass(frozen=True, slots=True)
class CheckedPress:
    person: User
    approval: Approval
    digest: str


def check(apps: Sequence[SlackApp], press: SlackPress) -> CheckedPress:
    """Whether this person may do it now. Raises PressRefused, and records that."""
    try:
        return _check(apps, press)
    except PressRefused as refused:
        _note(apps, press, refused)
        raise


def reject_act(apps: Sequence[SlackApp], press: SlackPress) -> None:
    """Records a signed act that no message of ours has."""
    delivery = _delivery(apps, press.value.partition(" ")[0])
    call_id = delivery.call_id if delivery else None
    approval = Approval.objects.for_queue().filter(pk=call_id).first()
    why = _("Messages in Slack take denials and comments, and nothing else.")
    _note(apps, press, PressRefused(why, approval))


def carry_out(apps: Sequence[SlackApp], press: SlackPress, text: str) -> CheckedPress:
    """Denies or comments, by the services that the card uses. Raises PressRefused, and records
    that."""
    checked = check(apps, press)
    try:
        _carry_out(press, checked, text)
    except (DecisionRefused, CommentRefused) as error:
        refused = PressRefused(str(error), checked.approval)
        _note(apps, press, refused)
        raise refused from error
    return checked


def _carry_out(press: SlackPress, checked: CheckedPress, text: str) -> None:
    # The message comes last: notifications/acts.py reads it there.
    message = press.value.partition(" ")[0]
    via = f"slack {press.user.team_id} {press.user.user_id} {message}"
    if press.act == "comment":
        comments.say(checked.approval, by=checked.person, text=text, via=via)
        return
    services.vote(
        checked.approval,
        by=checked.person,
        approve=False,
        seen_digest=checked.digest,
        reason=text,
        via=via,
    )


def _check(apps: Sequence[SlackApp], press: SlackPress) -> CheckedPress:
    person = _person(apps, press)
    approval, digest = _call(apps, press)
    if approval.state != Approval.State.WAITING:
        raise PressRefused(services.say_decided(approval), approval)
    if digest != approval.call.call_digest:
        raise PressRefused(
            _("The call was changed since this message. Open it to see what would be sent."),
            approval,
        )
    if is_step_up_asked(approval):
        raise PressRefused(
            _("The rule asks for a passkey or a code: this call is decided on its page only."),
            approval,
        )
    if why := eligibility.why_not(approval, person):
        raise PressRefused(why, approval)
    return CheckedPress(person, approval, digest)


def _person(apps: Sequence[SlackApp], press: SlackPress) -> User:
    teams = {app.team_id for app in apps}
    if press.team_id not in teams or press.user.team_id not in teams:
        raise PressRefused(chat_accounts.OTHER_TEAM)
    account = chat_accounts.linked(press.user)
    if account is None:
        raise PressRefused(
            _("This Slack account is linked to no user. Link it on your profile first.")
        )
    if not _is_of(account, apps):
        raise PressRefused(
            _("You linked it in another app, or its signing secret was changed: link it again.")
        )
    if not account.person.is_active:
        raise PressRefused(_("Your account here is disabled."))
    if account.person.lacks_factor:
        raise PressRefused(_("Your role needs a second factor: set one up on the page first."))
    return account.person


def _is_of(account: ChatAccount, apps: Sequence[SlackApp]) -> bool:
    """Whether it was linked in the app that signed. Whoever may set up an app of their own would
    press in the place of others."""
    return account.signed_by in {slack_secrets.signing_digest(app) for app in apps}


def _call(apps: Sequence[SlackApp], press: SlackPress) -> tuple[Approval, str]:
    """The call that the message is about, and its digest as it was in the message."""
    name, _space, digest = press.value.partition(" ")
    delivery = _delivery(apps, name)
    if delivery is None or delivery.webhook is None:
        raise PressRefused(_("This message is about no call here."))
    approval = Approval.objects.for_queue().filter(pk=delivery.call_id).first()
    if approval is None:
        raise PressRefused(_("This message is about no call here."))
    if press.message and delivery.receipt and press.message != delivery.receipt:
        raise PressRefused(_("This is not the message that was sent for the call."), approval)
    if not delivery.webhook.slack_app.takes(press.act):
        raise PressRefused(_("This channel does not take that: use the page."), approval)
    return approval, digest


def _delivery(apps: Sequence[SlackApp], name: str) -> Delivery | None:
    try:
        pk = UUID(name)
    except ValueError:
        return None
    mine = Delivery.objects.filter(webhook__in=[app.webhook_id for app in apps], pk=pk)
    return mine.select_related("webhook__slack_app").first()


def _note(apps: Sequence[SlackApp], press: SlackPress, refused: PressRefused) -> None:
    account = chat_accounts.linked(press.user)
    is_known = account is not None and _is_of(account, apps)
    call = refused.approval.call if refused.approval else None
    record(
        "slack.refused",
        actor=account.person.actor if account and is_known else SYSTEM,
        reason=str(refused),
        call_id=call.pk if call else None,
        agent=(call.agent_id, call.agent.name) if call else (0, ""),
        tool=call.tool_name if call else "",
        act=press.act[:20],
        team=press.user.team_id[:32],
        slack_user=press.user.user_id[:32],
    )
