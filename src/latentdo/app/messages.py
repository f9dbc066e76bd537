"""Words of the library on the page: Streamlit reads Markdown, and names from a file must not be any."""

from __future__ import annotations

import re

_MARKDOWN = re.compile(r"[\\`*_{}\[\]()#+\-.!|<>~$:&]")


def plain_text(message: str) -> str:
    """Text without Markdown: a column's name must not become a link, a heading or a picture from the network."""
    return _MARKDOWN.sub(r"\\\g<0>", message)
