"""Create or repair the project's virtual environment: ``python tools/make_venv.py [extra ...]``.

Needs nothing but the standard library. The environment counts as complete only when a stamp with the hash of
``pyproject.toml``, ``constraints.txt`` and the extras was written, so a half-made one is repaired by the next run.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MINIMUM = (3, 11)


def fail(message: str) -> int:
    """Print one clear message; the make target that called us stops there."""
    print(f"\nlatentdo: {message}", file=sys.stderr)
    return 1


def fingerprint(extras: list[str]) -> str:
    """Hash of everything that decides what has to be installed."""
    digest = hashlib.sha256(repr((sys.version_info[:2], sorted(extras))).encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def works(python: Path) -> bool:
    """Whether the environment's interpreter starts and has pip."""
    if not python.exists():
        return False
    probe = subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False)
    return probe.returncode == 0


def main(extras: list[str]) -> int:
    """Make ``.venv`` hold latentdo with the given extras."""
    if sys.version_info < MINIMUM:
        return fail(
            f"Python {'.'.join(map(str, MINIMUM))} or newer is needed, this is {sys.version.split()[0]} "
            f"({sys.executable}). Install a newer one and say which: make PYTHON=python3.11 ..."
        )
    environment = ROOT / ".venv"
    python = environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = environment / f".installed-{'-'.join(extras) or 'core'}"
    wanted = fingerprint(extras)
    program = python.parent / ("latentdo.exe" if sys.platform == "win32" else "latentdo")
    if stamp.exists() and stamp.read_text() == wanted and program.exists() and works(python):
        return 0
    if environment.exists() and not works(python):
        print("latentdo: .venv is incomplete, making it anew")
        shutil.rmtree(environment)
    if not environment.exists():
        print("latentdo: creating .venv")
        try:
            venv.create(environment, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            shutil.rmtree(environment, ignore_errors=True)
            return fail(f"could not create .venv ({error}). On Debian: apt-get install python3-venv")
    package = f".[{','.join(extras)}]" if extras else "."
    print(f"latentdo: installing {package} into .venv (a minute or two the first time)", flush=True)
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--constraint", "constraints.txt", "--editable", package]
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        return fail(
            "pip could not install the dependencies (see above). Without a network, or behind a proxy, set up pip "
            "first (pip config); then run the same make command again: it continues from here."
        )
    # What first fits compile is kept beside the package. Several test processes would otherwise each compile it; who
    # wants to see the demo should not have to wait for more than that needs.
    if extras and subprocess.run([program, "warm-up"], cwd=ROOT, check=False).returncode != 0:
        print("latentdo: nothing was compiled beforehand; the first fit will take a minute or two longer")
    stamp.write_text(wanted)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
