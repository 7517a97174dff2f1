"""Options described once, beside the fields that hold them.

A frozen dataclass whose fields are made by `option` carries, for each of them, its default, what it means, which values
are allowed and in which section it stands. The command line (`cli.options`), the keys of a sweep and the table of
settings in a report are all read from that description. A field that is itself such a dataclass is a group: its options
are listed where the group stands, under names of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from dpcheckin.errors import InvalidParameter, Superfluous
from dpcheckin.numerals import number, whole

DEFAULT_DELTA = 1e-5  # of every statement for which none is given

T = TypeVar("T")

_KEY = "option"
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")
_SCALARS = (bool, int, float, str, Path)
_READERS: dict[type[Any], tuple[Any, str]] = {
    int: (whole, "a whole number such as 60000, 60_000 or 1e6"),
    float: (number, "a number such as 0.02, 1e-5, 1/30 or 2%"),
}


@dataclass(frozen=True, slots=True)
class _Description:
    """What `option` keeps with a field."""

    help: str
    section: str
    choices: tuple[str, ...]
    on_command_line: bool
    changes_result: bool


@dataclass(frozen=True, slots=True)
class Option(_Description):
    """One option of a dataclass.

    `path` are the names of the groups it lies in, outermost first; `type` is the field's type with None as it was
    declared.
    """

    name: str
    path: tuple[str, ...]
    type: Any
    default: Any

    @property
    def dashed(self) -> str:
        """The name as it is typed on a command line, without the leading dashes."""
        return self.name.replace("_", "-")

    @property
    def scalar(self) -> type[Any] | None:
        """The type that a text is read as, None for options that no text can give."""
        return scalar_of(self.type)

    def parse(self, text: str) -> Any:
        """The value that a text stands for; `InvalidParameter` if it stands for none."""
        return read_as(self.name, self.scalar, text)

    def value(self, options: object) -> Any:
        """The option's value in an instance of the dataclass it was read from."""
        for group in self.path:
            options = getattr(options, group)
        return getattr(options, self.name)


def scalar_of(hint: Any) -> type[Any] | None:
    """The type of one value of a field: of `int | None`, int; None where no text can give one."""
    if hint is Any:  # a word, or what it stands for
        return str
    kinds = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    given = [kind for kind in kinds if kind is not type(None)]
    return given[0] if len(given) == 1 and given[0] in _SCALARS else None


def read_as(name: str, kind: type[Any] | None, text: str) -> Any:
    """The value of type `kind` that a text stands for; `InvalidParameter` of that name if it stands for none."""
    if kind is None:
        raise Superfluous(name, text, "leave it out: it cannot be given as text")
    if kind is bool:
        if text.lower() not in _TRUE + _FALSE:
            raise InvalidParameter(name, text, "true or false")
        return text.lower() in _TRUE
    read, allowed = _READERS.get(kind, (kind, f"a value of type {kind.__name__}"))
    try:
        return read(text)
    except ValueError:
        raise InvalidParameter(name, text, allowed) from None


def option(
    default: T,
    help: str | None = None,
    *,
    section: str = "",
    choices: Sequence[str] = (),
    on_command_line: bool = True,
    changes_result: bool = True,
    shown: bool = True,
) -> T:
    """A dataclass field that is an option, with its default, also on the command line, and a sentence of help.

    Without help the choices are listed, the words that are allowed; empty when any value of the type may be tried. The
    section is the heading it stands under, "" for the first one. `on_command_line` is False for what only a program can
    set, `changes_result` for what only says how the result is computed, `shown` for what may hold a password: the
    dataclass does not print it.
    """
    text = f"{listed(choices)}." if help is None and choices else help or ""
    about = _Description(text, section, tuple(choices), on_command_line, changes_result)
    return field(default=default, repr=shown, metadata={_KEY: about})


def listed(words: Sequence[str]) -> str:
    """Words as a sentence lists them.

    >>> listed(("sgd", "adam")), listed(("a", "b", "c"))
    ('sgd or adam', 'a, b or c')
    """
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def meant(typed: str, known: Iterable[str]) -> str:
    """The end of a sentence that says which of the known words one may stand for that was mistyped (typed).

    >>> meant("recoverd", ["age", "recovered"]), meant("dose", ["age"])
    ('; did you mean recovered?', '')
    """
    words = {word.lower(): word for word in known}
    near = get_close_matches(typed.lower(), words, 1, cutoff=0.75)
    return f"; did you mean {words[near[0]]}?" if near and typed not in words.values() else ""


def options_of(kind: type[Any]) -> tuple[Option, ...]:
    """Every option of a dataclass in the order of its fields, groups opened where they stand."""
    every = tuple(_walk(kind, ()))
    names = [each.name for each in every]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TypeError(f"{kind.__name__} has two options of the name {', '.join(twice)}")
    return every


def _walk(kind: type[Any], path: tuple[str, ...]) -> Iterator[Option]:
    hints = get_type_hints(kind)
    for each in fields(kind):
        about = each.metadata.get(_KEY)
        hint = hints[each.name]
        if isinstance(about, _Description):
            yield Option(**asdict(about), name=each.name, path=path, type=hint, default=each.default)
        elif is_dataclass(hint) and isinstance(hint, type):
            yield from _walk(hint, (*path, each.name))


def changed(options: T, changes: Mapping[str, Any]) -> T:
    """The same options with changes, new values by name, whatever group they lie in."""
    by_name = {each.name: each for each in options_of(type(options))}
    groups: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, value in changes.items():
        if name not in by_name:
            raise InvalidParameter("options", name, f"one of {', '.join(sorted(by_name))}{meant(name, by_name)}")
        groups.setdefault(by_name[name].path, {})[name] = value
    for path in sorted(groups, key=len, reverse=True):  # inner groups first
        options = _replaced(options, path, groups[path])
    return options


def _replaced(options: Any, path: tuple[str, ...], changes: dict[str, Any]) -> Any:
    if not path:
        return replace(options, **changes)
    inner = _replaced(getattr(options, path[0]), path[1:], changes)
    return replace(options, **{path[0]: inner})


def check_choices(options: object) -> None:
    """Refuse a word that is not among the choices of its option; groups check themselves."""
    for each in options_of(type(options)):
        if each.path or not each.choices:
            continue
        value = each.value(options)
        if value not in each.choices:
            near = meant(str(value), each.choices)
            raise InvalidParameter(each.name, value, listed(each.choices) + near)


def check_values(options: object, names: Sequence[str], holds: Callable[[Any], bool], allowed: str) -> None:
    """Refuse options by these names that are given (not None) and for which a condition does not hold.

    What it `holds` for is `allowed` in words; NaN must not make it true.
    """
    for name in names:
        value = getattr(options, name)
        if value is not None and not holds(value):
            raise InvalidParameter(name, value, allowed)
