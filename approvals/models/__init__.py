"""A person's yes or no, what is said before it, and a yes in advance."""

from approvals.models.break_glass import BreakGlass
from approvals.models.card_views import CardView
from approvals.models.comments import Comment, CommentQuerySet
from approvals.models.decision_keys import DecisionKey
from approvals.models.delegations import Delegation, DelegationQuerySet
from approvals.models.grants import MOST_DAYS, Grant, GrantQuerySet, GrantUse
from approvals.models.views import QueueView
from approvals.models.votes import (
    VOTE_STATEMENT,
    VOTES_STATEMENT,
    VOTES_STATEMENT_CALL,
    Approval,
    ApprovalQuerySet,
    Vote,
    VoteQuerySet,
)

__all__ = [
    "MOST_DAYS",
    "VOTES_STATEMENT",
    "VOTES_STATEMENT_CALL",
    "VOTE_STATEMENT",
    "Approval",
    "ApprovalQuerySet",
    "BreakGlass",
    "CardView",
    "Comment",
    "CommentQuerySet",
    "DecisionKey",
    "Delegation",
    "DelegationQuerySet",
    "Grant",
    "GrantQuerySet",
    "GrantUse",
    "QueueView",
    "Vote",
    "VoteQuerySet",
]
