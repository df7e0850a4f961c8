"""A person's yes or no, what is said before it, and a yes in advance."""

from approvals.models.comments import Comment, CommentQuerySet
from approvals.models.grants import MOST_DAYS, Grant, GrantQuerySet, GrantUse
from approvals.models.views import QueueView
from approvals.models.votes import VOTE_STATEMENT, Approval, ApprovalQuerySet, Vote, VoteQuerySet

__all__ = [
    "MOST_DAYS",
    "VOTE_STATEMENT",
    "Approval",
    "ApprovalQuerySet",
    "Comment",
    "CommentQuerySet",
    "Grant",
    "GrantQuerySet",
    "GrantUse",
    "QueueView",
    "Vote",
    "VoteQuerySet",
]
