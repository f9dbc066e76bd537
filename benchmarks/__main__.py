"""Run every benchmark: ``python -m benchmarks [--wide]``."""

import sys

from benchmarks import search_speed, simulator

if __name__ == "__main__":
    simulator.main()
    search_speed.main(wide="--wide" in sys.argv)
