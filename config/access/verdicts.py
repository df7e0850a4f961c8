"""Whether somebody may do something, and why: asked of the functions that decide it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from accounts.models import User
from accounts.permission_names import PERMISSION_NAMES
from accounts.permission_sources import (
    PermissionSource,
    RoleBook,
    SourceKind,
    holders,
    missed,
    sources,
)
from accounts.scopes import ScopeTarget
from approvals.eligibility import addressed, hindrance
from approvals.models import Approval, Vote
from approvals.step_up_proofs import StepUpOptions, steps
from core.http import lacks_factor
from core.messages.localizing import localized
from policies.thresholds import DECIDE, GROUP, PERSON, StepUp, Threshold


class AccessAnswer(StrEnum):
    YES = "yes"
    NO = "no"
    # As soon as something is there that is named.
    NOT_YET = "not_yet"
    # For some objects, of which none was named.
    PARTLY = "partly"


@dataclass(frozen=True, slots=True)
class AccessVerdict:
    """The answer, and the reasons for it in sentences."""

    answer: AccessAnswer
    reasons: list[str]
    # What is needed besides.
    needs: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PermissionAct:
    """An act for which pages ask a permission, or whose the object is."""

    key: str
    label: str
    permission: str
    book: RoleBook
    target: ScopeTarget | None = None
    # Of the view, where it asks whose the object is too.
    rule: Callable[[User], bool] | None = None
    owner_id: int | None = None
    # Why its owner may without the permission.
    own: str = ""
    # Other objects than one are named in the request: no role for some tags covers it.
    is_of_many: bool = False

    def explain(self, person: User) -> AccessVerdict:
        if not person.is_active:
            return AccessVerdict(AccessAnswer.NO, [_("The account is disabled.")])
        _stand_before(person, self.target)
        is_allowed = self.rule(person) if self.rule else person.has_perm(self.permission)
        if not is_allowed:
            return self._refused(person)
        if lacks_factor(person):
            said = _("A role of theirs requires a second factor, and they have none yet.")
            return AccessVerdict(AccessAnswer.NOT_YET, self._sources(person), [said])
        return AccessVerdict(AccessAnswer.YES, self._sources(person))

    def candidates(self) -> Q:
        """Everybody who may, and maybe others."""
        found = holders(self.permission, self.target, self.book)
        return found | Q(pk=self.owner_id, is_active=True) if self.owner_id else found

    def _sources(self, person: User) -> list[str]:
        own = [self.own] if self.own and person.pk == self.owner_id else []
        found = sources(person, self.permission, self.target, self.book)
        return own + _describe_all(found)

    def _refused(self, person: User) -> AccessVerdict:
        other = missed(person, self.permission, self.target)
        if other and self.target is None and not self.is_of_many:
            return AccessVerdict(AccessAnswer.PARTLY, _describe_all(other))
        said = _("The role “%(role)s” gives it for other tags alone: %(tags)s.")
        reasons = [said % {"role": one.role, "tags": one.tags} for one in other]
        return AccessVerdict(AccessAnswer.NO, reasons or [_no_role(self.permission, self.book)])


@dataclass(frozen=True, slots=True)
class ApprovalAct:
    """Approving and denying a pending call, or calls that nobody asked for yet."""

    key: str
    label: str
    book: RoleBook
    # Not saved, of calls that nobody asked for.
    approval: Approval
    rule: str = ""
    excluded: Mapping[int, str] = field(default_factory=dict)
    votes: Mapping[int, Vote] = field(default_factory=dict)
    # Delegate → names of those in whose place they vote.
    delegations: Mapping[int, Collection[str]] = field(default_factory=dict)

    def explain(self, person: User) -> AccessVerdict:
        if not person.is_active:
            return AccessVerdict(AccessAnswer.NO, [_("The account is disabled.")])
        _stand_before(person, None)
        own = self.votes.get(person.pk)
        why = hindrance(self.approval, person, self.excluded, own, person.group_names)
        if why and not person.has_perm(DECIDE):
            return AccessVerdict(AccessAnswer.NO, [_no_role(DECIDE, self.book)])
        if why:
            return AccessVerdict(AccessAnswer.NO, [_("They read: “%s”") % localized(why)])
        needs, are_there = self._needs(person)
        answer = AccessAnswer.YES if are_there else AccessAnswer.NOT_YET
        return AccessVerdict(answer, self._reasons(person), needs)

    def candidates(self) -> Q:
        """Everybody who decides at all: for the others of them it says why not."""
        return holders(DECIDE, None, self.book)

    def _reasons(self, person: User) -> list[str]:
        asked = addressed(self.approval, person, person.group_names)
        said = _describe_all(sources(person, DECIDE, None, self.book))
        said += [self._asked(threshold) for threshold in asked]
        if names := self.delegations.get(person.pk):
            listed = pgettext("list", ", ").join(names)
            said.append(_("Delegate: votes in the place of %s.") % listed)
        return list(dict.fromkeys(said))

    def _asked(self, threshold: Threshold) -> str:
        names = {"rule": self.rule, "name": threshold.source.partition(":")[2]}
        if threshold.source.startswith(GROUP):
            return _("Rule “%(rule)s” asks the group “%(name)s”.") % names
        if threshold.source.startswith(PERSON):
            return _("Rule “%(rule)s” asks “%(name)s”.") % names
        if self.rule:
            return _("Rule “%(rule)s” asks whoever may decide.") % names
        return _("No rule names who decides.")

    def _needs(self, person: User) -> tuple[list[str], bool]:
        """Second factors that they need besides, and whether they have them."""
        needs, has_factor = [], not lacks_factor(person)
        if not has_factor:
            needs.append(_("A role of theirs requires a second factor, and they have none yet."))
        step = steps([self.approval], person).get(self.approval.pk)
        if step is None:
            return needs, has_factor
        has_means = _has_means(step) or (step.wanted == StepUp.TOTP and person.has_identity)
        said = _("Confirms by: %s.") % StepUp(step.wanted).label
        return [*needs, said if has_means else said + " " + _("They have none yet.")], (
            has_factor and has_means
        )


Act = PermissionAct | ApprovalAct


def _has_means(step: StepUpOptions) -> bool:
    return step.passkeys or step.takes_codes


def _stand_before(person: User, target: ScopeTarget | None) -> None:
    """Sets the object of the request, as a page about it does (core/http.py)."""
    person.find_target = lambda: target
    person.__dict__.pop("target", None)


def _describe_all(found: Collection[PermissionSource]) -> list[str]:
    """A sentence for all roles together, and one for each other source."""
    roles = [localized(one.role) for one in found if one.kind is SourceKind.ROLE]
    others = [_describe(one) for one in found if one.kind is not SourceKind.ROLE]
    if not roles:
        return others
    listed = pgettext("list", ", ").join(roles)
    said = ngettext("Role or group: %s.", "Roles and groups: %s.", len(roles)) % listed
    return [said, *others]


def _describe(source: PermissionSource) -> str:
    match source.kind:
        case SourceKind.SUPERUSER:
            return _("Superuser of the host.")
        case SourceKind.OWN:
            return _("Given to them alone, by no role.")
    names = {"role": source.role, "tags": source.tags}
    return _("Role “%(role)s”, for %(tags)s.") % names


def _no_role(permission: str, book: RoleBook) -> str:
    """Which roles would give it."""
    shown, are_more = book.names(permission)
    names = [*sorted(map(localized, shown)), *([_("a custom role")] if are_more else [])]
    given = {"permission": _(PERMISSION_NAMES.get(permission, permission))}
    if not names:
        return _("No role has the permission “%(permission)s”.") % given
    said = _(
        "No role of theirs has the permission “%(permission)s”. Roles that have it: %(roles)s."
    )
    return said % {**given, "roles": pgettext("list", ", ").join(names)}
