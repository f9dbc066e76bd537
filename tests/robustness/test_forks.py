"""After a fork of a process in which torch has computed on two threads, fits and models go on computing."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal
import numpy as np
import torch
from latentdo.data import Dataset
from latentdo.solvers.gradient import GradientConfiguration, solve

rng = np.random.default_rng(0)
x = rng.normal(size=(200, 2))
dataset = Dataset.from_table(x, regimes=np.arange(200) % 2)
few = GradientConfiguration(
    max_regimes=2, first_steps=2, steps=1, final_steps=1, max_subproblems=1,
    density="nonlinear", n_init=1, propose=False,
)

def compute_on_all_threads():
    return torch.ones(3_000_000).exp().sum().item()

torch.set_num_threads(2)
compute_on_all_threads()
fitted = solve(dataset, few).model
for operation in (lambda: solve(dataset, few), lambda: fitted.log_joint(dataset.z)):
    child = os.fork()
    if child == 0:
        signal.alarm(300)  # instead of waiting for ever
        operation()
        assert torch.get_num_threads() == 1
        compute_on_all_threads()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
assert torch.get_num_threads() == 2  # the parent computes as before
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_torch_computes_in_a_fork():
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
