from __future__ import annotations

from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Proof
from approvals import step_up_proofs


class Command(BaseCommand):
    help = "Check again, from their rows alone, all that people confirmed."

    def handle(self, **options: Any) -> None:
        counted: Counter[str] = Counter()
        bad = 0
        kept = (
            Proof.objects.select_related("passkey", "person")
            .prefetch_related("votes")
            .order_by("pk")
        )
        for proof in kept.iterator(chunk_size=1000):
            counted[proof.method] += 1
            why = step_up_proofs.problem(proof, list(proof.votes.all()))
            if why:
                bad += 1
                self.stderr.write(f"{proof.at:%Y-%m-%d %H:%M} {proof.person}: {why}")
        if bad:
            raise CommandError(f"{bad} of {counted.total()} proofs do not hold.")
        self.stdout.write(
            f"{counted.total()} proofs checked: {counted['passkey']} by passkey, "
            f"{counted['totp']} by one-time code, "
            f"{counted['oidc']} at an identity provider. All hold."
        )
