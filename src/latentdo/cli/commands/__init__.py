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
    falsify,
    fit,  # isort: skip
    predict,
    report,
    serve,
    simulate,
    tune,
    warm_up,
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
    "falsify",
    "fit",
    "predict",
    "report",
    "serve",
    "simulate",
    "tune",
    "warm_up",
]
