"""Words of the library on the page: what it calls arguments are questions here, and Streamlit reads Markdown."""

from __future__ import annotations

import re
from typing import Final

HOW: Final = "How the file is written"
MISSING: Final = {
    "refuse them": "error",
    "leave them out": "drop",
    "keep them, and sum missing cells out": "model",
}
"""What may be done about rows with missing values, as the page and as the library calls it."""

_MARKDOWN = re.compile(r"[\\`*_{}\[\]()#+\-.!|<>~$:&]")

_ON_THE_PAGE: Final = (
    *(
        (rf"missing=[\"']{value}[\"']", f'"Rows with missing values: {words}"')
        for words, value in MISSING.items()
    ),
    (r"pass drop=\[(.+?)\] to leave (?:it|them|these columns) out", r'take \1 out of "Variables"'),
    (r"drop=\[(.+?)\]", r'taking \1 out of "Variables"'),
    (r"make it the index, X\.set_index\('.*?'\); otherwise ", "or are of no interest, "),
    (r" If [^.]*? means that a value is missing, pass na_values=\[.*?\]\.", ""),
    (r"keep it apart and pass it as batch= to fit", 'choose it as "Column with batches" instead'),
    (r"keep it apart and pass it as time= to fit", 'choose it as "Column with times" instead'),
    (r"pass regime_column=('.*?')", r'choose \1 as "Column with known conditions"'),
    (r"say kinds=\{('.*?'): '(\w+)'\}", r'call \1 \2 under "What your columns are"'),
    (r"pass its encoding, for example encoding=\"latin-1\"", f'choose another encoding under "{HOW}"'),
    (r"pass (?:the right )?separator=(?:'(.+?)')?", f'choose the right separator under "{HOW}"'),
    (r"(?:pass )?decimal=\"(.)\"", rf'choose "\1" as decimal sign under "{HOW}"'),
    (r"transform=[\"']([\w-]+)[\"']", r'"Transform of all columns: \1"'),
    (r"raise max_regimes", 'raise "Most regimes"'),
    (r"max_regimes=(\d+)", r'"Most regimes" is \1'),
)


def in_page_words(message: str) -> str:
    r"""A message of the library in the words of the page.

    Examples
    --------
    >>> in_page_words("Constant columns: 'k'; pass drop=['k'] to leave these columns out")
    'Constant columns: \'k\'; take \'k\' out of "Variables"'
    """
    for code, words in _ON_THE_PAGE:
        message = re.sub(code, words, message)
    return message


def plain_text(message: str) -> str:
    """Text without Markdown: a column's name must not become a link, a heading or a picture from the network."""
    return _MARKDOWN.sub(r"\\\g<0>", message).replace("\n", "  \n")
