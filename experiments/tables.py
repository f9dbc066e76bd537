"""One table, written as Markdown and as LaTeX."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

_LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "±": r"$\pm$", "≤": r"$\le$"}


@dataclass(frozen=True)
class Table:
    """Text in cells, already rounded; ``name`` is the file's, ``caption`` the sentence above the table."""

    name: str
    caption: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def markdown(self) -> str:
        """A pipe table; ``**bold**`` in cells stays."""
        lines = [self.header, tuple("---" for _ in self.header), *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def latex(self) -> str:
        """A ``booktabs`` table; bold cells stay bold."""
        body = [" & ".join(map(_escape, row)) + r" \\" for row in self.rows]
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{_escape(self.caption)}}}",
                rf"\begin{{tabular}}{{l{'r' * (len(self.header) - 1)}}}",
                r"\toprule",
                " & ".join(map(_escape, self.header)) + r" \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def write(self, folder: Path) -> None:
        """Write ``name.md`` and ``name.tex``."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.md").write_text(f"{self.caption}\n\n{self.markdown()}\n", "utf-8")
        (folder / f"{self.name}.tex").write_text(self.latex(), "utf-8")


def _escape(text: str) -> str:
    parts = "".join(_LATEX.get(character, character) for character in text).split("**")
    return "".join(rf"\textbf{{{part}}}" if i % 2 else part for i, part in enumerate(parts))
