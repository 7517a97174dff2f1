"""The one list of randomizers, what each is called, and how a text or a table becomes one.

A class says its own name, aliases, label and parameters (`base.Randomizer`); nobody else writes them down again. Three
kinds of classes are known: those of this package, those that other installed packages declare as entry points of the
group `dpcheckin.randomizers`, and those that a program has given to `register`. What is typed behind a name, `dary:10`
or `subset:20:3`, fills the class's `arguments` in their order, without those that are known already: a survey of 20
categories says `subset:3`, a training run `privunit`. `randomizer` reads, `described` and `typed_name` write.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import cleandoc
from typing import Any, TypeVar, cast

from dpcheckin import accounting
from dpcheckin.errors import DpCheckinError, InvalidParameter, Superfluous
from dpcheckin.numerals import number, typed, whole
from dpcheckin.options import listed
from dpcheckin.randomizers.additive import Gaussian, Laplace
from dpcheckin.randomizers.base import Randomizer
from dpcheckin.randomizers.caps import LdpSgd, PrivUnit
from dpcheckin.randomizers.integer_vectors import DiscreteGaussianVector, SkellamVector
from dpcheckin.randomizers.one_bit import L1Bit, LInfinityBit
from dpcheckin.randomizers.response import BinaryResponse, DaryResponse, HadamardResponse
from dpcheckin.randomizers.source import Array, RandomSource
from dpcheckin.randomizers.subsets import SubsetSelection, UnaryEncoding
from dpcheckin.randomizers.two_parts import DitheredLevels, LocalHashing, TreeResponse


@dataclass(frozen=True)
class AnyRandomizer(Randomizer):
    """Whatever keeps a local epsilon, and perhaps a delta: there is a price, and nothing to run.

    Args:
        local_epsilon: epsilon of one report, in nats.
        local_delta: delta of one report; 0 for pure randomizers.
    """

    local_epsilon: float
    local_delta: float = 0.0

    name, label = "any", "any pure randomizer"

    @property
    def pair(self) -> accounting.LocalPair:
        from dpcheckin.accounting.pairs import local, profile

        if not self.local_delta:
            return local.any_pure(self.local_epsilon)
        return profile.approximate(self.local_epsilon, self.local_delta)

    def describe(self) -> str:
        return f"any randomizer of local epsilon {self.local_epsilon:g}"

    def randomize(self, values: Array, source: RandomSource) -> Array:
        self._cannot("one that makes reports: this stands for all of them")


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
    """Let a frozen dataclass that subclasses `Randomizer` be named wherever ours can be; also a decorator."""
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
    """The class that a name or an alias stands for, as it is typed, without arguments."""
    for kind in (*_registered.values(), *BUILT_IN):
        if name in (kind.name, *kind.aliases):
            return kind
    for point in _points():  # what was not asked for need not load
        if point.name == name:
            return _loaded(point)
    for kind in kinds().values():
        if name in kind.aliases:
            return kind
    raise InvalidParameter("randomizer", name, listed(usages()))


def usages(wanted: Callable[[Kind], bool] = lambda _: True, *known: str) -> tuple[str, ...]:
    """How those that are `wanted` are typed, such as `dary:K`, without the fields that are `known`."""
    return tuple(_usage(kind, known) for kind in kinds().values() if wanted(kind))


def parameters(kind: Kind) -> dict[str, str]:
    """The fields of a randomizer, each with the sentence that its docstring, or that of a base, has about it.

    >>> parameters(DaryResponse)["symbols"]
    'how many there are, 2 or more'
    """
    about: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        _, _, arguments = cleandoc(base.__doc__ or "").partition("Args:\n")
        sentences = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", arguments, re.MULTILINE)
        about |= {name: " ".join(text.split()).rstrip(".") for name, text in sentences}
    return {name: about.get(name, "") for name in _fields(kind)}


def is_whole(kind: Kind, parameter: str) -> bool:
    """Are only whole numbers meant by this parameter of a kind?"""
    return _fields(kind)[parameter].type in (int, "int")


def usual(kind: Kind, **numbers: Any) -> Randomizer:
    """One of this `kind` with usual values for all fields that are not among the `numbers`."""
    some = {argument.field: argument.usual for argument in kind.arguments}
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
    given = {key: value for key, value in given.items() if value is not None}
    if isinstance(named, Randomizer):
        for key, value in given.items():
            raise Superfluous(key.replace("_", "-"), value, "leave it out: the randomizer has one")
        return named
    if not isinstance(named, str):
        return _from_table(named)
    name, *words = named.split(":")
    kind = kind_named(name)
    own = _fields(kind)
    numbers = {k: v for k, v in {**(offered or {}), **given}.items() if k in own and v is not None}
    typed_fields = [argument.field for argument in kind.arguments]
    places = [place for place in typed_fields if place not in numbers]
    if len(words) > len(places):
        option = next((place for place in typed_fields if place in numbers), kind.noise_field)
        allowed = f"{kind.name}, and {words[-1]} as --{option.replace('_', '-')}"
        raise InvalidParameter("randomizer", named, allowed)
    numbers |= {p: _read(named, kind, p, word) for p, word in zip(places, words, strict=False)}
    missing = [name for name in own if own[name].default is MISSING and name not in numbers]
    if any(name in typed_fields for name in missing):
        beside = f" (or --{kind.noise_field.replace('_', '-')} beside {kind.name})"
        raise InvalidParameter("randomizer", named, _usage(kind) + (beside if kind.noise_field in missing else ""))
    for key, value in given.items():
        if key not in own:
            raise Superfluous(key.replace("_", "-"), value, f"leave it out: {_usage(kind)} says it all")
    if missing:
        raise InvalidParameter(missing[0].replace("_", "-"), None, f"a number, for the randomizer {kind.name}")
    return _made(kind, numbers)


def described(randomizer: Randomizer) -> dict[str, Any]:
    """The name and every parameter of a randomizer that has a name, as plan documents have them.

    >>> described(DaryResponse(2.0, 10))
    {'name': 'dary', 'local_epsilon': 2.0, 'symbols': 10}
    """
    kind = type(randomizer)
    if kind_named(kind.name) is not kind:
        raise InvalidParameter("randomizer", randomizer.describe(), "one that is registered")
    return {"name": kind.name, **{_SPELLED.get(name, name): getattr(randomizer, name) for name in _fields(kind)}}


def typed_name(kind: Kind, numbers: Mapping[str, Any], *known: str) -> str:
    """The text that `randomizer` reads, for a `kind` with these `numbers`, without the fields that are `known`.

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
    wanted = {_SPELLED.get(name, name): field for name, field in _fields(kind).items()}
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
        raise InvalidParameter("randomizer", kind.name, f"numbers it can have ({problem})") from None


def _read(text: str, kind: Kind, place: str, word: str) -> float:
    try:
        return whole(word) if is_whole(kind, place) else number(word)
    except ValueError:
        raise InvalidParameter("randomizer", text, _usage(kind)) from None


def needed_arguments(kind: Kind) -> list[str]:
    """Fields that must be typed behind the name, unless something else says them."""
    own = _fields(kind)
    return [argument.field for argument in kind.arguments if own[argument.field].default is MISSING]


def _usage(kind: Kind, known: tuple[str, ...] = ()) -> str:
    needed = {*needed_arguments(kind)} - {*known}
    return ":".join([kind.name, *(argument.word for argument in kind.arguments if argument.field in needed)])


def _fields(kind: Kind) -> dict[str, Field[Any]]:
    return {field.name: field for field in fields(kind)}  # type: ignore[arg-type]


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
        raise DpCheckinError(f"the package {package} offers a randomizer {point.name!r} that fails: {reason}") from None
    return kind


def _checked(kind: Any) -> Kind:
    """Refuse what is no randomizer that can be named."""
    if not (is_dataclass(kind) and isinstance(kind, type) and issubclass(kind, Randomizer)):
        raise InvalidParameter("randomizer", kind, "a dataclass that subclasses Randomizer")
    missing = sorted(getattr(kind, "__abstractmethods__", ()))
    if missing:
        raise InvalidParameter("randomizer", kind.__name__, f"one that has {', '.join(missing)}")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", kind.name):
        raise InvalidParameter("name", kind.name, "small letters, digits and dashes")
    strange = {argument.field for argument in kind.arguments} - {*_fields(kind)}
    if strange:
        raise InvalidParameter("arguments", sorted(strange), f"fields of {kind.__name__}")
    for other in BUILT_IN:
        if {kind.name, *kind.aliases} & {other.name, *other.aliases}:
            raise InvalidParameter("name", kind.name, "a name that no randomizer has yet")
    return cast(Kind, kind)
