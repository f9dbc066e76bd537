"""One fit on several processes: every rank takes a share of the rows, and what they find is summed.

Ranks start from the same seed and apply the same summed gradients, so their parameters stay equal bit for bit; nothing
but gradients (or moments, for linear densities) and the state of the generator is exchanged. ``torchrun`` starts them.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from latentdo.model.moments import Moments

__all__ = ["LostRankError", "Ranks", "joined_ranks"]


class LostRankError(ConnectionError):
    """Another process of this fit has died."""


@dataclass(frozen=True)
class Ranks:
    """Which process this is, and of how many.

    Parameters
    ----------
    rank, size : int
        0 and 1 where there is only this process; then nothing below does anything.
    """

    rank: int = 0
    size: int = 1

    @classmethod
    def current(cls) -> Ranks:
        """What :func:`joined_ranks` has set up."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @property
    def is_first(self) -> bool:
        """Whether this process speaks for all: prints, and writes files."""
        return self.rank == 0

    def share(self, n: int) -> slice:
        """Part of this rank in ``n`` rows; the parts differ by one row at most."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def sum_gradients(self, parameters: Iterable[Tensor], *more: Tensor) -> None:
        """Add up the gradients, and further tensors, of all ranks in place, in one message."""
        if self.size == 1:
            return
        tensors = [p.grad for p in parameters if p.grad is not None] + list(more)
        flat = torch.cat([tensor.reshape(-1).double() for tensor in tensors])
        self._talk(lambda: dist.all_reduce(flat))
        for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):  # type: ignore[no-untyped-call]
            tensor.copy_(part.reshape(tensor.shape))

    def sum_moments(self, moments: Moments) -> Moments:
        """Moments of the rows of all ranks."""
        if self.size == 1:
            return moments
        second, entropy = moments.second.contiguous(), moments.entropy.double()
        self._talk(lambda: dist.all_reduce(second))
        self._talk(lambda: dist.all_reduce(entropy))
        return Moments(second, entropy)

    def share_randomness(self) -> None:
        """Put every rank's generator where that of the first is: shares of unequal size draw unequally often."""
        if self.size == 1:
            return
        state = torch.get_rng_state()
        self._talk(lambda: dist.broadcast(state, 0))
        torch.set_rng_state(state)

    def wait(self) -> None:
        """Until all ranks are here."""
        if self.size > 1:
            self._talk(dist.barrier)

    def _talk(self, exchange: Callable[[], object]) -> None:
        try:
            exchange()
        except RuntimeError as error:
            raise _lost(f"another of the {self.size} processes of this fit has died") from error


def _lost(message: str) -> LostRankError:
    """The error; what follows is saving, which torchrun's signal to give up must not interrupt."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return LostRankError(message)


def _told_to_stop(*_: object) -> None:
    raise _lost("torchrun ends this process, because another one has died or it was stopped itself")


@contextmanager
def joined_ranks() -> Iterator[Ranks]:
    """Meet the other processes that ``torchrun`` has started, if it has, and part from them in the end."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or "MASTER_ADDR" not in os.environ:
        yield Ranks()
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        dist.init_process_group("cpu:gloo,cuda:nccl")
    else:
        dist.init_process_group("gloo")
    before = signal.signal(signal.SIGTERM, _told_to_stop)
    try:
        yield Ranks.current()
    finally:
        signal.signal(signal.SIGTERM, before)
        dist.destroy_process_group()
