"""Every command's `--help` as one Markdown page (docs/cli.md); `./dev docs` writes it.

The texts are the parser's own, as lists instead of the columns of a terminal: lines of a list break
where a screen ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from dpcheckin.cli import application
from dpcheckin.cli.arguments.options import fill_lists

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
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"## `{context.command_path}`\n\n`{context.command_path} {usage}`\n"
    if command.help:
        yield f"{_prose(command.help)}\n"
    children = sorted(getattr(command, "commands", {}).items())
    if children:
        yield "\n".join(_link(context.command_path, *one) for one in children) + "\n"
    for title, lines in _panels(command, context).items():
        yield f"**{title}**\n\n" + "\n".join(lines) + "\n"
    for one, child in children:
        yield from _sections(child, one, context)


def _panels(command: Any, context: Any) -> dict[str, list[str]]:
    """Arguments and options under the headings that the help gives them; --help goes without."""
    found: dict[str, list[str]] = {}
    fill_lists(command)
    every = command.get_params(context)
    for one in sorted(every, key=lambda one: str(one.param_type_name)):  # arguments first
        record = one.get_help_record(context)
        if record is None or "--help" in one.opts:
            continue
        title = "Arguments" if one.param_type_name == "argument" else "Options"
        title = getattr(one, "rich_help_panel", None) or title
        found.setdefault(title, []).append(_item(*record))
    return found


def _link(group: str, name: str, command: Any) -> str:
    path = f"{group} {name}"
    return f"- [`{path}`](#{path.replace(' ', '-')}): {_prose(command.get_short_help_str(200))}"


def _item(name: str, text: str) -> str:
    return f"- `{_plain(name)}`: {_prose(text)}" if text else f"- `{_plain(name)}`"


def _plain(text: str) -> str:
    """Without what typer puts before brackets, for a terminal with markup."""
    return " ".join(text.replace("\\[", "[").split())


def _prose(text: str) -> str:
    """Paragraphs of a help text, in which stars and underscores are no markup."""
    paragraphs = (_plain(one) for one in re.split(r"\n\s*\n", text.replace("\f", "")))
    return "\n\n".join(re.sub(r"([*_<])", r"\\\1", one) for one in paragraphs)


if __name__ == "__main__":
    print(page(), end="")
