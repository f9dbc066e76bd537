"""The paper's experiments and our own, on the public interface only; each module is one command."""
