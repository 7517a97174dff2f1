"""The one list of randomizers, what each is called, and how a text or a table becomes one.

A class says its own name, aliases, label and parameters (`base.Randomizer`); nobody else writes
them down again. Three kinds of classes are known: those of this package, those that other installed
packages declare as entry points of the group `dpcheckin.randomizers`, and those that a program has
given to `register`. What is typed behind a name, `dary:10` or `subset:20:3`, fills the class's
`arguments` in their order, without those that are known already: a survey of 20 categories says
`subset:3`, a training run `privunit`. `randomizer` reads, `described` and `typed_name` write.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import cleandoc
from typing import Any, TypeVar, cast

from dpcheckin.errors import DpCheckinError, InvalidParameter
from dpcheckin.numerals import number, typed, whole
from dpcheckin.options import listed
from dpcheckin.randomizers.additive import Gaussian, Laplace
from dpcheckin.randomizers.base import AnyRandomizer, Randomizer
from dpcheckin.randomizers.caps import LdpSgd, PrivUnit
from dpcheckin.randomizers.codes import HadamardResponse, LocalHashing
from dpcheckin.randomizers.discrete_gaussian import DiscreteGaussianVector
from dpcheckin.randomizers.levels import DitheredLevels
from dpcheckin.randomizers.one_bit import L1Bit, LInfinityBit
from dpcheckin.randomizers.response import BinaryResponse, DaryResponse
from dpcheckin.randomizers.skellam_vector import SkellamVector
from dpcheckin.randomizers.subsets import SubsetSelection, UnaryEncoding
from dpcheckin.randomizers.tree import TreeResponse

GROUP = "dpcheckin.randomizers"
BUILT_IN: tuple[type[Randomizer], ...] = (
    AnyRandomizer,
    BinaryResponse,
    DaryResponse,
    LdpSgd,
    PrivUnit,
    Laplace,
    Gaussian,
    SubsetSelection,
    UnaryEncoding,
    HadamardResponse,
    L1Bit,
    LInfinityBit,
    SkellamVector,
    DiscreteGaussianVector,
    DitheredLevels,
    TreeResponse,
    LocalHashing,
)
_SPELLED = {"dimension": "entries"}
"""`dimension` of a plan's randomizer is the size of a report; a vector has entries there."""

Kind = type[Randomizer]
K = TypeVar("K", bound=Kind)
_registered: dict[str, Kind] = {}


class BrokenPackage(UserWarning):
    """An installed package offers a randomizer that cannot be loaded."""


def register(kind: K) -> K:
    """Let a randomizer of one's own be named wherever one of the package can be; also a decorator.

    Args:
        kind: a frozen dataclass that subclasses `Randomizer`, with a `name`.
    """
    _registered[_checked(kind).name] = kind
    return kind


def kinds() -> dict[str, Kind]:
    """Every randomizer by its name; one that cannot be loaded is left out with a warning."""
    known = {kind.name: kind for kind in BUILT_IN}
    for point in _points():
        try:
            kind = _loaded(point)
        except DpCheckinError as problem:
            warnings.warn(str(problem), BrokenPackage, stacklevel=2)
        else:
            known.setdefault(kind.name, kind)
    return {**known, **_registered}


def kind_named(name: str) -> Kind:
    """The class that a name or an alias stands for.

    Args:
        name: as it is typed, without arguments.
    """
    for kind in (*_registered.values(), *BUILT_IN):
        if name in (kind.name, *kind.aliases):
            return kind
    for point in _points():  # what was not asked for need not load
        if point.name == name:
            return _loaded(point)
    known = kinds()
    for kind in known.values():
        if name in kind.aliases:
            return kind
    raise InvalidParameter("randomizer", name, listed(usages()))


def usages(wanted: Callable[[Kind], bool] = lambda _: True, *known: str) -> tuple[str, ...]:
    """How those that are wanted are typed, such as `dary:K`.

    Args:
        wanted: whether a class is meant.
        known: fields that need not be typed.
    """
    return tuple(_usage(kind, known) for kind in kinds().values() if wanted(kind))


def parameters(kind: Kind) -> dict[str, str]:
    """The fields of a randomizer, each with the sentence that its docstring has about it.

    Args:
        kind: a class of `kinds`.

    >>> parameters(DaryResponse)["symbols"]
    'how many there are, 2 or more'
    """
    _, _, told = cleandoc(kind.__doc__ or "").partition("Args:\n")
    said = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", told, re.MULTILINE)
    about = {name: " ".join(text.split()).rstrip(".") for name, text in said}
    return {one.name: about.get(one.name, "") for one in _fields(kind)}


def is_whole(kind: Kind, parameter: str) -> bool:
    """Whether only whole numbers are meant by a parameter."""
    return any(one.name == parameter and one.type in (int, "int") for one in _fields(kind))


def usual(kind: Kind, **numbers: Any) -> Randomizer:
    """One of this kind with usual values for all that is not given.

    Args:
        kind: a class of `kinds`.
        numbers: by field.
    """
    some = {one.field: one.usual for one in kind.arguments}
    return kind(**{kind.noise_field: 1.0, **some, **numbers})


def randomizer(
    named: str | Mapping[str, Any] | Randomizer, offered: Mapping[str, Any] | None = None,
    **given: Any,
) -> Randomizer:  # fmt: skip
    """The randomizer that a text or a table stands for; anything else is refused.

    Args:
        named: a text such as `dary:10`; a table, as `described` gives it, in which nothing may be
            missing; or a randomizer, which is the answer itself.
        offered: numbers by field, for those that the randomizer has.
        given: numbers that it must have; None is as good as left out.

    >>> randomizer("subset:20:3", local_epsilon=1.0).describe()
    'subsets of 3 of 20 symbols, local epsilon 1'
    """
    said = {key: value for key, value in given.items() if value is not None}
    if isinstance(named, Randomizer):
        for key, value in said.items():
            raise InvalidParameter(key.replace("_", "-"), value, "left out: the randomizer has one")
        return named
    if not isinstance(named, str):
        return _from_table(named)
    name, *words = named.split(":")
    kind = kind_named(name)
    own = {one.name: one.default for one in _fields(kind)}
    numbers = {k: v for k, v in {**(offered or {}), **said}.items() if k in own and v is not None}
    typed_fields = [one.field for one in kind.arguments]
    places = [place for place in typed_fields if place not in numbers]
    if len(words) > len(places):
        option = next((place for place in typed_fields if place in numbers), kind.noise_field)
        allowed = f"{kind.name}, and {words[-1]} as --{option.replace('_', '-')}"
        raise InvalidParameter("randomizer", named, allowed)
    numbers |= {p: _read(named, kind, p, word) for p, word in zip(places, words, strict=False)}
    missing = [name for name, default in own.items() if default is MISSING and name not in numbers]
    if any(name in typed_fields for name in missing):
        beside = f" (or --{kind.noise_field.replace('_', '-')} beside {kind.name})"
        raise InvalidParameter(
            "randomizer", named, _usage(kind) + (beside if kind.noise_field in missing else "")
        )
    for key, value in said.items():
        if key not in own:
            why = f"left out: {_usage(kind)} says it all"
            raise InvalidParameter(key.replace("_", "-"), value, why)
    if missing:
        why = f"a number, for the randomizer {kind.name}"
        raise InvalidParameter(missing[0].replace("_", "-"), None, why)
    return _made(kind, numbers)


def described(randomizer: Randomizer) -> dict[str, Any]:
    """The name and every parameter of a randomizer, as plan documents have them.

    Args:
        randomizer: one with a name.

    >>> described(DaryResponse(2.0, 10))
    {'name': 'dary', 'local_epsilon': 2.0, 'symbols': 10}
    """
    kind = type(randomizer)
    if kind_named(kind.name) is not kind:
        raise InvalidParameter("randomizer", randomizer.describe(), "one that is registered")
    own = [one.name for one in _fields(kind)]
    return {"name": kind.name, **{_SPELLED.get(one, one): getattr(randomizer, one) for one in own}}


def typed_name(kind: Kind, numbers: Mapping[str, Any], *known: str) -> str:
    """The text that `randomizer` reads.

    Args:
        kind: a class of `kinds`.
        numbers: by field.
        known: fields that are given beside the text.

    >>> typed_name(SubsetSelection, {"symbols": 20, "chosen": 3})
    'subset:20:3'
    """
    words = [typed(numbers[name]) for name in needed_arguments(kind) if name not in known]
    return ":".join([kind.name, *words])


def _from_table(table: Mapping[str, Any]) -> Randomizer:
    given = dict(table)
    name = given.pop("name", None)
    try:
        kind = kind_named(name if isinstance(name, str) else "")
    except InvalidParameter:
        raise InvalidParameter("randomizer.name", name, ", ".join(kinds())) from None
    wanted = {_SPELLED.get(one.name, one.name): one for one in _fields(kind)}
    if given.keys() != wanted.keys():
        odd = sorted(given.keys() ^ wanted.keys())
        raise InvalidParameter("randomizer", odd, f"exactly {', '.join(sorted(wanted))}")
    for key, value in given.items():
        is_text = wanted[key].type in (str, "str")
        if isinstance(value, bool) or isinstance(value, str) != is_text:
            raise InvalidParameter(f"randomizer.{key}", value, "a text" if is_text else "a number")
    return _made(kind, {wanted[key].name: value for key, value in given.items()})


def _made(kind: Kind, numbers: Mapping[str, Any]) -> Randomizer:
    try:
        return kind(**numbers)
    except DpCheckinError:
        raise
    except (TypeError, ValueError, ArithmeticError) as problem:  # of somebody else's class
        raise InvalidParameter(
            "randomizer", kind.name, f"numbers it can have ({problem})"
        ) from None


def _read(text: str, kind: Kind, place: str, word: str) -> float:
    try:
        return whole(word) if is_whole(kind, place) else number(word)
    except ValueError:
        raise InvalidParameter("randomizer", text, _usage(kind)) from None


def needed_arguments(kind: Kind) -> list[str]:
    """Fields that must be typed behind the name, unless something else says them.

    Args:
        kind: a class of `kinds`.
    """
    needed = {one.name for one in _fields(kind) if one.default is MISSING}
    return [one.field for one in kind.arguments if one.field in needed]


def _usage(kind: Kind, known: tuple[str, ...] = ()) -> str:
    needed = {*needed_arguments(kind)} - {*known}
    return ":".join([kind.name, *(one.word for one in kind.arguments if one.field in needed)])


def _fields(kind: Kind) -> tuple[Any, ...]:
    return fields(kind)  # type: ignore[arg-type]


@cache
def _points() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


@cache
def _loaded(point: EntryPoint) -> Kind:
    package = point.dist.name if point.dist is not None else point.value
    try:
        kind = _checked(point.load())
        if kind.name != point.name:
            raise InvalidParameter("name", kind.name, f"{point.name}, as its entry point has it")
    except Exception as problem:  # whatever somebody else's module raises
        reason = " ".join(str(problem).split()) or type(problem).__name__
        raise DpCheckinError(
            f"the package {package} offers a randomizer {point.name!r} that fails: {reason}"
        ) from None
    return kind


def _checked(kind: Any) -> Kind:
    """Refuse what is no randomizer that can be named."""
    is_fine = is_dataclass(kind) and isinstance(kind, type) and issubclass(kind, Randomizer)
    if not is_fine:
        raise InvalidParameter("randomizer", kind, "a dataclass that subclasses Randomizer")
    missing = sorted(getattr(kind, "__abstractmethods__", ()))
    if missing:
        raise InvalidParameter("randomizer", kind.__name__, f"one that has {', '.join(missing)}")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", kind.name):
        raise InvalidParameter("name", kind.name, "small letters, digits and dashes")
    strange = {one.field for one in kind.arguments} - {one.name for one in _fields(kind)}
    if strange:
        raise InvalidParameter("arguments", sorted(strange), f"fields of {kind.__name__}")
    for other in BUILT_IN:
        if {kind.name, *kind.aliases} & {other.name, *other.aliases}:
            raise InvalidParameter("name", kind.name, "a name that no randomizer has yet")
    return cast(Kind, kind)
