"""Imported by Python before anything of the product, in processes that the fault suite starts."""

import os

if "FAULTS_SYNCED" in os.environ:
    from tests.faults import spoil

    spoil.begin()
