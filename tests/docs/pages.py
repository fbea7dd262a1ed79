"""What README.md and docs/ tell a reader to type, and the files they show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = (
    *(REPOSITORY / name for name in ("README.md", "ARTIFACT.md", "CONTRIBUTING.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
)


@dataclass(frozen=True)
class Code:
    """A fenced block with its language, or, without one, a piece of code in a sentence."""

    page: str
    language: str
    text: str


@cache
def codes() -> tuple[Code, ...]:
    """Everything on all pages that is set as code, in order."""
    return tuple(code for page in PAGES for code in _codes(page))


def _codes(page: Path) -> Iterator[Code]:
    name = str(page.relative_to(REPOSITORY))
    for token in MarkdownIt().enable("table").parse(page.read_text()):
        if token.type == "fence":
            yield Code(name, token.info, token.content)
        for child in token.children or ():
            if child.type == "code_inline":
                yield Code(name, "", child.content)


def blocks(language: str) -> list[Code]:
    """Fenced blocks of a language."""
    return [code for code in codes() if code.language == language]


def commands() -> list[str]:
    """Every command of every shell block, each once."""
    lines = (line for block in blocks("sh") for line in block.text.splitlines())
    split = (part for line in lines for part in re.split(r" && |;", re.sub(r"\s+#.*", "", line)))
    return list(dict.fromkeys(part.strip() for part in split if part.strip()))


def named(beginning: str) -> list[list[str]]:
    """The words of every command on a page that begins like this, in blocks and sentences."""
    inline = [" ".join(code.text.split()) for code in codes() if not code.language]
    found = (re.sub(r"^\.venv/bin/", "", command) for command in [*commands(), *inline])
    return [shlex.split(one) for one in dict.fromkeys(found) if re.match(beginning, one)]
