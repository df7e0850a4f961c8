"""Tokens of service accounts, confirmed as their creators would."""

from accounts import scope_confirmations, service_accounts, stepup
from accounts.models import Proof, ServiceAccount, User
from accounts.stepup import Ticket


def proof_of(account: ServiceAccount, by: User) -> Proof:
    act = "create a token"
    said = scope_confirmations.statement(account, account.scopes, by, act, Ticket.new())
    return stepup.keep_code_proof(by, said)


def issue(account: ServiceAccount, by: User) -> str:
    return service_accounts.issue_token(account, by=by, proof=proof_of(account, by))
