"""What is said of a problem that is not the program's own: one line, in the words typed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from errno import EDQUOT, ENOSPC
from itertools import pairwise
from typing import Any

from dpcheckin.cli.arguments import EXTRAS
from dpcheckin.errors import DpCheckinError, InvalidParameter, MissingExtra
from dpcheckin.options import meant

# names that others give to what is meant, in papers and libraries
SYNONYMS = {
    "batch": "cohort",
    "clients": "population",
    "devices": "population",
    "eps": "epsilon",
    "eps0": "local-epsilon",
    "epsilon": "local-epsilon",
    "epsilon0": "local-epsilon",
    "iterations": "rounds",
    "lr": "learning-rate",
    "n": "population",
    "noise": "noise-multiplier",
    "output": "out",
    "probability": "rate",
    "sampling-probability": "rate",
    "sampling-rate": "rate",
    "sigma": "noise-multiplier",
    "steps": "rounds",
    "users": "population",
}


def what_to_say(problem: Exception, commands: Any, arguments: Sequence[str]) -> tuple[str, int] | None:
    """The line and the exit code; None for what is the program's own fault.

    Args:
        problem: what was raised.
        commands: the tree of commands.
        arguments: what was typed.
    """
    if isinstance(problem, InvalidParameter):
        return _as_typed(problem, commands, arguments), 2
    if isinstance(problem, MissingExtra):
        return str(_extra(problem.module, arguments) or problem), 2
    if isinstance(problem, DpCheckinError):
        return _dashed(str(problem), _options(commands, arguments), "--"), 2
    if isinstance(problem, ModuleNotFoundError):
        missing = _extra((problem.name or "").partition(".")[0], arguments)
        return None if missing is None else (str(missing), 2)
    if isinstance(problem, OSError) and problem.filename is not None:
        return f"{problem.filename}: {problem.strerror}", 2  # a file that cannot be used
    if isinstance(problem, OSError) and problem.errno in (ENOSPC, EDQUOT):
        return "the disk is full; what was being written is not there", 2
    # the argument parser's own errors: unknown option, missing value, not a number
    if hasattr(problem, "format_message"):
        said = _for_a_sweep(problem, commands, arguments) or _parsed(problem, commands, arguments)
        return said, getattr(problem, "exit_code", 2)
    return None


def _extra(module: str, arguments: Sequence[str]) -> MissingExtra | None:
    """The complaint about a missing module: parties need all of `service`, not the planner's part of it."""
    extra = EXTRAS.get(module)
    if extra == "ui" and "ui" not in arguments[:1]:
        extra = "service"
    return None if extra is None else MissingExtra(module, extra)


def _parsed(problem: Any, commands: Any, arguments: Sequence[str]) -> str:
    """The parser's message; of an unknown option, with those that may be meant."""
    message = " ".join(problem.format_message().split())
    typed = str(getattr(problem, "option_name", None) or "").lstrip("-")
    if typed and hasattr(problem, "possibilities"):
        message = re.sub(r" \(?Did you mean.*$", "", message)  # its own idea goes by letters only
        alike = _meant(typed, sorted(_options(commands, arguments)))
        return message + (f" Did you mean {alike}?" if alike else "")
    if message.count("Did you mean") > 1:  # the parser and its wrapper both have an idea
        message = re.sub(r" \(Did you mean one of: [^)]*\)$", "", message)
    return message


def _meant(typed: str, known: Sequence[str]) -> str:
    """The options that an unknown one may stand for."""
    if SYNONYMS.get(typed) in known:
        return f"--{SYNONYMS[typed]}"
    begun = [name for name in known if name.startswith(typed)] if len(typed) > 1 else []
    alike = begun or get_close_matches(typed, known, 2)
    return " or ".join(f"--{name}" for name in alike)


def _for_a_sweep(problem: Any, commands: Any, arguments: Sequence[str]) -> str:
    """What to type instead, where an option of training was given to a sweep over them."""
    option = str(getattr(problem, "option_name", "")).lstrip("-")
    if "sweep" not in arguments[:1] or option not in _options(commands, ["train"]):
        return ""
    value = next((v for o, v in pairwise(arguments) if o == f"--{option}"), "")
    for word in arguments:
        if word.startswith(f"--{option}="):
            value = word.partition("=")[2]
    verb = "over" if "," in value else "set"
    return f"a sweep has no --{option}: write --{verb} {option}={value or 'VALUE'}"


def _as_typed(problem: InvalidParameter, commands: Any, arguments: Sequence[str]) -> str:
    """The message about a parameter in the words of the command line.

    Options have their dashes and arguments stand in capitals, as `--help` writes them.
    """
    known = _options(commands, arguments)
    name, allowed = problem.name.replace("_", "-"), _dashed(problem.allowed, known)
    value = _dashed(problem.value, known) if isinstance(problem.value, str) else problem.value
    if isinstance(value, str):
        allowed += _alike(value, allowed)
    if name not in known:
        shown = _positional(commands, arguments).get(problem.name, problem.name)
        return str(type(problem)(shown, problem.value, allowed))
    if value is None:
        return f"--{name} is needed: {allowed}"
    if "probability" in allowed and isinstance(value, float) and 1.0 < value <= 100.0:
        allowed += f", such as {value:g}%"
    return f"--{type(problem)(name, value, allowed)}"


def _dashed(text: str, known: set[str], before: str = "") -> str:
    """A text of the library with options as they are typed."""
    for option in (name for name in known if "-" in name):
        text = re.sub(rf"\b{option.replace('-', '_')}\b", before + option, text)
    return text


def _alike(value: str, allowed: str) -> str:
    """The word among those allowed that a mistyped one may stand for."""
    if "did you mean" in allowed:
        return ""
    words = {word.partition(":")[0]: word for word in re.findall(r"[a-z][\w:.-]+", allowed)}
    found = meant(value.partition(":")[0], words)
    return re.sub(r"(?<=mean )(.*)(?=\?)", lambda near: words[near[0]], found)


def _typed_command(command: Any, arguments: Sequence[str]) -> Any:
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    return command


def _options(command: Any, arguments: Sequence[str]) -> set[str]:
    """The long options of the command that was typed, without their dashes."""
    params = _typed_command(command, arguments).params
    return {text[2:] for one in params for text in one.opts if text.startswith("--")}


def _positional(command: Any, arguments: Sequence[str]) -> dict[str, str]:
    """The arguments of the command that was typed, as its help writes them."""
    params = _typed_command(command, arguments).params
    found = [one for one in params if one.param_type_name == "argument"]
    # typer from 0.26 on has small letters, there and here
    return {one.name: getattr(one, "human_readable_name", one.name) for one in found}
