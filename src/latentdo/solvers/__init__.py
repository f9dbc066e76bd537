"""How a model is fitted: ``search`` (structural EM on decomposable scores) and ``gradient`` (the paper's way)."""
