"""The paper's model: graph, targets, embeddings, sticks, densities and assignments, and the bound on their evidence."""
