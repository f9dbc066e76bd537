"""Files and folders that are never half-written, never taken from another run, and never lost by accident.

``process`` tells whether the writer of something still runs, ``atomic`` replaces single files, ``claim`` makes one run
the owner of an output folder, ``cadence`` says when a long run should keep what it has.
"""

from latentdo.files.atomic import check_target, is_leftover, write_atomically
from latentdo.files.cadence import CHECKPOINT_SECONDS, Cadence, Keeper, check_seconds
from latentdo.files.claim import Claim, claimed, naming, state_of
from latentdo.files.process import Process

__all__ = [
    "CHECKPOINT_SECONDS",
    "Cadence",
    "Claim",
    "Keeper",
    "Process",
    "check_seconds",
    "check_target",
    "claimed",
    "is_leftover",
    "naming",
    "state_of",
    "write_atomically",
]
