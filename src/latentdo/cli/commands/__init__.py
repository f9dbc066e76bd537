"""One file a sub-command; importing them registers them with the program, in the order of the help."""

from latentdo.cli.commands import (
    bench,
    bootstrap,
    completion,
    demo,
    effect,
    evaluate,
    explain,
    export,
    fit,  # isort: skip
    report,
    serve,
    simulate,
    tune,
)

__all__ = [
    "bench",
    "bootstrap",
    "completion",
    "demo",
    "effect",
    "evaluate",
    "explain",
    "export",
    "fit",
    "report",
    "serve",
    "simulate",
    "tune",
]
