"""Every command's `--help` as one Markdown page (docs/cli.md); `./dev docs` writes it.

The text is the parser's own, without the boxes and colours of a terminal, at one fixed width.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer.main

from dpcheckin.cli import application

WIDTH = 96

_HEAD = """# Command line

What `--help` says of every command. `./dev docs` writes this page; a test compares the two.
Every command ends with exit code 0, or with 2 and one line on standard error when it was asked for
something that is not allowed or not proved.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_sections(typer.main.get_command(application()), "dpcheckin", None)])


def _sections(command: Any, name: str, parent: Any) -> Iterator[str]:
    command.rich_markup_mode = None
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    context.terminal_width = WIDTH
    # typer escapes brackets for a terminal with markup, which a page is not
    lines = command.get_help(context).replace("\\[", "[").splitlines()
    help_text = "\n".join(line.rstrip() for line in lines)
    yield f"## `{context.command_path}`\n\n```text\n{help_text.strip()}\n```\n"
    for name, child in sorted(getattr(command, "commands", {}).items()):
        yield from _sections(child, name, context)


if __name__ == "__main__":
    print(page(), end="")
