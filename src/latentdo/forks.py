"""Processes that were forked from one in which torch has computed.

Torch keeps its threads between computations. A fork copies the memory that says so, but not the threads: the next
computation on several of them would wait for ever.
"""

from __future__ import annotations

import os
import sys

__all__ = ["prepare_torch"]

_torch_is_inherited = False


def _remember_torch() -> None:
    global _torch_is_inherited  # noqa: PLW0603  (a fact about this process)
    _torch_is_inherited = "torch" in sys.modules


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_remember_torch)


def prepare_torch() -> None:
    """Let torch compute on one thread in a fork, where it has no others; call this before it computes."""
    if _torch_is_inherited:
        import torch

        torch.set_num_threads(1)
