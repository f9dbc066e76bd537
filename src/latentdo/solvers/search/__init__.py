"""Structural EM: cluster, search graph and targets by a decomposable score, reassign rows, repeat."""
