"""One fit on several processes: every rank takes a share of the rows, and what they find is summed.

Ranks start from the same seed and apply the same sums, so what they hold stays equal bit for bit; little but gradients
and moments is exchanged. ``torchrun`` starts them. Torch is imported only if it has: a search in one process does
without.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["LostRankError", "Ranks", "joined_ranks"]

T = TypeVar("T")


class LostRankError(ConnectionError):
    """Another process of this fit has died."""


@dataclass(frozen=True)
class Ranks:
    """Which process this is, and of how many.

    Parameters
    ----------
    rank, size : int
        0 and 1 where there is only this process; then nothing below does anything.

    Examples
    --------
    >>> alone = Ranks.current()
    >>> alone.share(10), alone.gather("mine")
    (slice(0, 10, None), ['mine'])
    """

    rank: int = 0
    size: int = 1

    @classmethod
    def current(cls) -> Ranks:
        """What :func:`joined_ranks` has set up."""
        dist = sys.modules.get("torch.distributed")
        if dist is not None and dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @classmethod
    def started(cls) -> Ranks:
        """What ``torchrun`` says, before the processes have met."""
        if "MASTER_ADDR" not in os.environ:
            return cls()
        return cls(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))

    @property
    def is_first(self) -> bool:
        """Whether this process speaks for all: prints, and writes files."""
        return self.rank == 0

    def share(self, n: int) -> slice:
        """Part of this rank in ``n`` rows; the parts differ by one row at most."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def sum(self, values: ArrayLike) -> NDArray[np.float64]:
        """Sum of an array over the ranks, the same bits on all of them."""
        own = np.asarray(values, dtype=np.float64)
        if self.size == 1:
            return own
        import torch
        import torch.distributed as dist

        total = torch.from_numpy(own.copy())
        self._talk(lambda: dist.all_reduce(total))
        return np.asarray(total.numpy())

    def gather(self, own: T) -> list[T]:
        """What every rank has, in their order, on all of them."""
        if self.size == 1:
            return [own]
        import torch.distributed as dist

        found: list[T | None] = [None] * self.size
        self._talk(lambda: dist.all_gather_object(found, own))
        return found  # type: ignore[return-value]

    def join(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The shares of all ranks together, on all of them."""
        return rows if self.size == 1 else np.concatenate(self.gather(rows))

    def from_first(self, own: T) -> T:
        """What the first rank has: processors of another make round otherwise, and one choice must hold for all."""
        if self.size == 1:
            return own
        import torch.distributed as dist

        held = [own]
        self._talk(lambda: dist.broadcast_object_list(held, 0))
        return held[0]

    def sum_tensors(self, *tensors: Tensor) -> None:
        """Add up tensors of all ranks in place, in one message."""
        if self.size == 1:
            return
        import torch
        import torch.distributed as dist

        flat = torch.cat([tensor.reshape(-1).double() for tensor in tensors])
        self._talk(lambda: dist.all_reduce(flat))
        for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):  # type: ignore[no-untyped-call]
            tensor.copy_(part.reshape(tensor.shape))

    def sum_gradients(self, parameters: Iterable[Tensor], *more: Tensor) -> None:
        """Add up the gradients, and further tensors, of all ranks in place."""
        self.sum_tensors(*(p.grad for p in parameters if p.grad is not None), *more)

    def share_randomness(self) -> None:
        """Put every rank's generator where that of the first is: shares of unequal size draw unequally often."""
        if self.size == 1:
            return
        import torch
        import torch.distributed as dist

        state = torch.get_rng_state()
        self._talk(lambda: dist.broadcast(state, 0))
        torch.set_rng_state(state)

    def wait(self) -> None:
        """Until all ranks are here."""
        if self.size > 1:
            import torch.distributed as dist

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
    if Ranks.started().size == 1:
        yield Ranks()
        return
    import torch
    import torch.distributed as dist

    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        dist.init_process_group("cpu:gloo,cuda:nccl")
    else:
        dist.init_process_group("gloo")
    before = signal.signal(signal.SIGTERM, _told_to_stop)
    try:
        yield Ranks.current()
    finally:
        if (
            signal.getsignal(signal.SIGTERM) is _told_to_stop
        ):  # else a rank is lost, and there is something to say
            signal.signal(signal.SIGTERM, before)
        dist.destroy_process_group()
