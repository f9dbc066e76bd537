"""Install the package as a user would, where nothing of it is, and use it: ``python tools/try_install.py``.

A wheel is built and installed into a new environment in a temporary folder, with the dependencies that pip finds;
``--offline`` lends it those of the interpreter that runs this, which then needs hatchling. Nothing is compiled: the
wheel has to fit every platform.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
USE = """
import latentdo
from importlib import resources
assert "site-packages" in latentdo.__file__, latentdo.__file__
assert latentdo.simulate(n_variables=3, n_samples=300, random_state=1).X.shape[1] == 3
assert latentdo.load_sachs().X.shape == (7466, 11)
latentdo.LatentInterventionDAG()
for name in ("report.html.j2", "report.css", "report.js"):
    assert resources.files("latentdo.report").joinpath(name).read_text("utf-8")
"""


def main() -> int:
    """Build, install, use; the exit code of what failed first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--offline", action="store_true", help="borrow the dependencies of this interpreter")
    offline = parser.parse_args().offline
    with tempfile.TemporaryDirectory(prefix="latentdo-install-") as name:
        place = Path(name)
        run = _runner(place)
        # pip builds in a copy, so that nothing is left behind in the sources
        alone = ["--no-deps", "--no-build-isolation"] if offline else ["--no-deps"]
        run(sys.executable, "-m", "pip", "wheel", "--quiet", *alone, "--wheel-dir", place / "dist", ROOT)
        (wheel,) = (place / "dist").glob("*.whl")
        if not wheel.name.endswith("-py3-none-any.whl"):
            raise SystemExit(f"{wheel.name} is not for every platform")
        venv.create(place / "venv", with_pip=True)
        binaries = place / "venv" / ("Scripts" if os.name == "nt" else "bin")
        python = binaries / "python"
        how = ["--no-deps"] if offline else ["--constraint", ROOT / "constraints.txt"]
        run(python, "-m", "pip", "install", "--quiet", *how, wheel)
        if offline:
            site = subprocess.run(
                [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            # Last on the path, and without the .pth files there, one of which may lead to the sources.
            Path(site, "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        run(python, "-c", USE)
        run(binaries / "latentdo", "--version")
        run(binaries / "latentdo", "simulate", "--out", "truth", "--n-samples", "100")
        if not offline:  # the first fit compiles for some minutes
            run(binaries / "latentdo", "demo")
    print(f"{wheel.name} installs and works")
    return 0


def _runner(place: Path):  # type: ignore[no-untyped-def]
    """A way to run commands in an empty folder, without the sources and settings of whoever runs this."""
    empty = place / "empty"
    empty.mkdir()
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def run(*command: str | Path) -> None:
        done = subprocess.run([str(word) for word in command], cwd=empty, env=clean, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, command[:4]))} ... ended with code {done.returncode}")

    return run


if __name__ == "__main__":
    raise SystemExit(main())
