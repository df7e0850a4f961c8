"""Client and approvers of a call in the entry of its outcome: with the user, the agent and the
credential, which that has anyway, it names the whole chain.

Costs calls of agents that no client signed in, and that nobody approved, two comparisons.
"""

from __future__ import annotations

# SQL, NULL where there is nothing to say: of the call `m`, with its `effect`, and of `e`, its first
# entry. A standing approval is in that.
CHAIN = """CASE WHEN m.effect = 'ask' OR e.details ?& '{signed_in,grant}' THEN
            NULLIF(jsonb_strip_nulls(jsonb_build_object(
                'signed_in', e.details -> 'signed_in',
                'grant', e.details -> 'grant', 'granted_by', e.details -> 'granted_by',
                'approvers', CASE WHEN m.effect = 'ask' THEN approvals_approvers(m.id) END
            )), '{}')
            WHEN e.details ? 'signed_in' THEN
            jsonb_build_object('signed_in', e.details -> 'signed_in') END"""
