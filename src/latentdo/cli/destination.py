"""Where a command writes: claimed and tried before the work begins, and never at the price of earlier work.

What an interrupted command has computed lies in ``OUT.unfinished`` (:mod:`latentdo.files.claim`), from where
``--resume`` goes on. Nothing of it is removed before a new run has something to show for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentdo.cli.console import complain

if TYPE_CHECKING:
    from latentdo.files import Claim
    from latentdo.result import FitResult


class Destination:
    """The output folder of a command that runs; see :func:`destination`.

    Parameters
    ----------
    claim : Claim
        The folder.
    overwrite : bool
        Whether results that are there may be replaced.
    """

    def __init__(self, claim: Claim, *, overwrite: bool) -> None:
        self._claim = claim
        self._overwrite = overwrite
        self.keeps_states = False
        self.keep = False

    def state(self, name: str) -> Path:
        """A file for what ``--resume`` can go on from; it goes when the command has come to its end."""
        self.keeps_states = True
        return self._claim.state_file(name)

    def write(self, result: FitResult, **parts: Any) -> Path:
        """Write a folder of results (:func:`latentdo.outputs.write_outputs`); or keep the result elsewhere."""
        from latentdo.outputs import rescue, write_outputs

        try:
            return write_outputs(result, self._claim.named, self._overwrite, **parts)
        except Exception:
            kept = rescue(result, parts.get("bootstrap"))
            complain(
                f"The results could not be written. So that nothing is lost, the fitted model is kept in {kept}: "
                f"`latentdo report {kept / 'model.safetensors'} --out report.html` shows it."
            )
            raise


@contextmanager
def destination(
    out: Path,
    *,
    overwrite: bool,
    resume: bool = False,
    state: str | None = None,
    files: tuple[str, ...] | None = None,
    marker: str | None = None,
) -> Iterator[Destination]:
    """Claim the output folder of a command, and make sure that results can be written, before anything else is done.

    Parameters
    ----------
    out : Path
        The folder.
    overwrite : bool
        Replace results and states of earlier runs, once there are new ones.
    resume : bool
        Go on from the states of an interrupted run, and replace its results.
    state : str, optional
        How names of this command's states begin; None if it keeps none.
    files, marker : optional
        See :func:`latentdo.outputs.fresh_folder`; those of a fit by default.

    Yields
    ------
    Destination
        Set ``keep`` on it if results were written although something is still to be done.

    Raises
    ------
    OSError
        If the folder is another run's or somebody else's, if it cannot be written, or if it holds earlier work and
        neither ``overwrite`` nor ``resume`` says what to do about it.
    """
    from latentdo.files import claimed
    from latentdo.outputs import RESULT_FILES, RESULT_MARKER, check_replaceable

    with claimed(out) as claim:
        _respect_states(claim, overwrite=overwrite, resume=resume, state=state)
        check_replaceable(
            claim, files or RESULT_FILES, overwrite=overwrite or resume, marker=marker or RESULT_MARKER
        )
        claim.probe()
        work = Destination(claim, overwrite=overwrite or resume)
        try:
            yield work
        except BaseException:
            work.keep = True
            raise
        finally:
            if not work.keep and (work.keeps_states or not resume):
                claim.drop_states()
            elif work.keeps_states and claim.has_states:
                complain(
                    f"What was computed so far is kept in {claim.folder}; the same command with --resume goes on."
                )


def _respect_states(claim: Claim, *, overwrite: bool, resume: bool, state: str | None) -> None:
    """Hours of work are not dropped by accident."""
    if resume:
        if state is not None and not claim.has_states:
            complain(
                f"nothing to resume: there is no {str(claim.folder)!r}, so this starts from the beginning."
            )
        elif state is not None and not claim.has_states_of(state):
            raise FileExistsError(
                f"{str(claim.folder)!r} holds what another command has computed before it was interrupted; resume that "
                "one, choose another folder, or pass --overwrite to start anew."
            )
    elif claim.has_states and not overwrite:
        raise FileExistsError(
            f"{str(claim.folder)!r} holds what an interrupted run has computed; pass --resume to go on from there, or "
            "--overwrite to start anew."
        )
    elif claim.has_states:
        claim.set_states_aside()
