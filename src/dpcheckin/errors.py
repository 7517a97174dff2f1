"""Every exception that dpcheckin raises on purpose, and nothing else.

    DpCheckinError
    ├── InvalidParameter     an argument is out of range, NaN or contradicts another
    │   │                    (also a ValueError)
    │   └── Superfluous      an argument that cannot be given here
    ├── OutsideTheorem       the arguments are legal, but no theorem in the package covers them
    ├── NotAGuarantee        a lower bound, conjecture or refuted claim used as a guarantee
    ├── Unreachable          a target that no choice of the free parameter can meet
    ├── DatasetMissing       training data that is neither here nor to be had
    ├── MissingExtra         a library that only some of the package needs is not installed
    ├── ServiceError         a party of the deployed system cannot or will not go on
    └── NumericalFailure     a computation could not certify its own error

The first is the caller's to mend, and its message is always one line that names the parameter, the value and what is
allowed. The others say that there is no answer to give: a number returned in their place would look like a guarantee
and not be one, so none of them is ever turned into an ε of zero or infinity. Catch `DpCheckinError` to catch them all.
"""

__all__ = [
    "DatasetMissing",
    "DpCheckinError",
    "InvalidParameter",
    "MissingExtra",
    "NotAGuarantee",
    "NumericalFailure",
    "OutsideTheorem",
    "ServiceError",
    "Superfluous",
    "Unreachable",
]

_LONGEST_VALUE = 80


class DpCheckinError(Exception):
    """Base of everything this package raises on purpose."""


class InvalidParameter(DpCheckinError, ValueError):
    """An argument that cannot be accepted.

    >>> print(InvalidParameter("rate", 1.5, "a number in [0, 1]"))
    rate = 1.5 is not allowed: expected a number in [0, 1]
    """

    instead = "expected "

    def __init__(self, name: str, value: object, allowed: str) -> None:
        # All three go to Exception so that the error survives pickling between processes.
        super().__init__(name, value, allowed)
        self.name = name
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        # a port is a name, not a count
        port = self.name.endswith("port") and isinstance(self.value, int)
        value = str(self.value) if port else _on_one_line(self.value)
        return f"{self.name} = {value} is not allowed: {self.instead}{self.allowed}"


class Superfluous(InvalidParameter):
    """An argument that cannot be given here; `allowed` says to leave it out, and why.

    >>> print(Superfluous("slots", 9, "leave it out: a check-in has none"))
    slots = 9 is not allowed: leave it out: a check-in has none
    """

    instead = ""


class OutsideTheorem(DpCheckinError):
    """No theorem covers these arguments; the message gives the failed condition and a way out."""


class NotAGuarantee(DpCheckinError):
    """Somebody tried to use a lower bound, a conjecture or a refuted claim as a guarantee."""


class DatasetMissing(DpCheckinError):
    """The data is neither on this machine nor to be had over the network."""


class MissingExtra(DpCheckinError, ImportError):
    """A library that only some of the package needs is not installed.

    >>> print(MissingExtra("matplotlib", "plot"))
    matplotlib is not installed: pip install 'dpcheckin[plot]'
    """

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(module, extra)
        self.module, self.extra = module, extra

    def __str__(self) -> str:
        return f"{self.module} is not installed: pip install 'dpcheckin[{self.extra}]'"


class ServiceError(DpCheckinError):
    """The deployed system stops here: its parties raise subclasses that say which and why."""


class Unreachable(DpCheckinError):
    """The target of an inverse question lies beyond what the free parameter can achieve."""


class NumericalFailure(DpCheckinError):
    """The arithmetic could not be certified, so no figure is returned."""


def _on_one_line(value: object) -> str:
    """A value as a reader would type it: no `np.float64(…)`, no line breaks, never very long."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    text = f"{value:,}" if is_number else " ".join(repr(value).split())
    if len(text) <= _LONGEST_VALUE:
        return text
    half = _LONGEST_VALUE // 2  # of a path the end matters, of a number the beginning
    return f"{text[: half - 1]}…{text[-half:]}"
