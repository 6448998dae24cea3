"""The words of mathematical answers: functions, constants, units, and the small words between them."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

__all__ = [
    "CONJUNCTIONS",
    "CONSTANTS",
    "FUNCTION_NAMES",
    "GREEK",
    "RELATIONS",
    "SHORT_WORDS",
    "UNIT_LETTERS",
    "UNIT_SIZES",
    "singular",
    "size_of",
]

_SAME: Final = (
    "sqrt cbrt exp ln log lg sin cos tan cot sec csc arcsin arccos arctan arccot sinh cosh tanh coth arsinh arcosh "
    "artanh abs floor ceil Re Im sgn gcd lcm max min mod det"
)
FUNCTION_NAMES: Final[dict[str, str]] = {
    **{name: name for name in _SAME.split()},
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "acot": "arccot", "arctg": "arctan", "tg": "tan",
    "ctg": "cot", "cosec": "csc", "sh": "sinh", "ch": "cosh", "th": "tanh", "asinh": "arsinh", "acosh": "arcosh",
    "atanh": "artanh", "arcsinh": "arsinh", "arccosh": "arcosh", "arctanh": "artanh", "sign": "sgn",
    "root": "sqrt", "comb": "binom", "binom": "binom", "binomial": "binom", "dbinom": "binom", "tbinom": "binom",
    "choose": "binom", "nCr": "binom", "factorial": "factorial", "ceiling": "ceil", "conjugate": "conjugate",
    "Sqrt": "sqrt", "Log": "log", "Ln": "ln", "Sin": "sin", "Cos": "cos", "Tan": "tan", "Exp": "exp",
}  # fmt: skip
"""Functions as written, in LaTeX and in plain text, and what they are called inside."""

GREEK: Final = frozenset(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho varrho sigma tau "
    "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Upsilon Phi Psi Omega ell hbar aleph "
    "triangle".split()
)
CONSTANTS: Final[dict[str, str]] = {
    "pi": "pi", "Pi": "pi", "e": "e", "i": "i", "infty": "inf", "infinity": "inf", "Infinity": "inf", "inf": "inf",
    "oo": "inf",
}  # fmt: skip
RELATIONS: Final[dict[str, str]] = {
    "=": "=", "==": "=", "<": "<", ">": ">", "<=": "≤", ">=": "≥", "=<": "≤", "=>": "≥", "!=": "≠", "<>": "≠",
    "lt": "<", "gt": ">", "le": "≤", "ge": "≥", "leq": "≤", "geq": "≥", "leqslant": "≤", "geqslant": "≥", "ne": "≠",
    "neq": "≠", "approx": "≈", "simeq": "≈", "doteq": "≈", "approxeq": "≈", "in": "∈", "equiv": "≡", "cong": "≡",
    "leqq": "≤", "geqq": "≥", "nleq": ">", "ngeq": "<", "notin": "∉", "mapsto": "=", "colon": ":", "subseteq": "⊆",
    "subset": "⊆", "sim": "~", "propto": "∝", "parallel": "∥", "perp": "⊥", "divides": "∣",
}  # fmt: skip
CONJUNCTIONS: Final = frozenset({"and", "or", "und", "et", "ou", "oder", "land", "lor", "wedge", "vee", "AND", "OR"})

SHORT_WORDS: Final = frozenset(
    "is if no not the of in for all any are to at by as be it an on so we he she has was were its iff per via yes but "
    "cm mm km nm ft mi yd lb lbs kg mg ml mL cc oz hr hrs min mins sec secs ms day yr yrs mph kmh kph sq cu pm am USD "
    "usd EUR eur odd dne DNE cup gal pt qt mol kJ kW kWh Hz kHz MHz GB MB TB KB kB Pa kPa atm dB eV rad deg pct men "
    "man boy car cat dog egg pen box bag way set two six ten one red let can nor out bit tip rpm pts mA kN Nm fps lbf "
    "rs Rs INR GBP CNY RMB AUD CAD erg cal bar lux rev MeV keV GeV AU ly kpc Mpc mV kV MPa GPa nF MW GW mW mH".split()
)
"""Runs of up to three letters that are words, not products of variables; longer runs are words anyway."""

UNIT_LETTERS: Final = frozenset("m s h g l L N J W V A K C F T u Omega".split())
"""Letters that may be a unit directly after a number."""

_LENGTHS = {"mm": "1/1000", "cm": "1/100", "dm": "1/10", "m": "1", "km": "1000", "inch": "127/5000", "in": "127/5000",
            "ft": "381/1250", "foot": "381/1250", "feet": "381/1250", "yard": "1143/1250",
            "yd": "1143/1250", "mile": "201168/125", "mi": "201168/125", "meter": "1", "metre": "1",
            "centimeter": "1/100", "centimetre": "1/100", "millimeter": "1/1000", "millimetre": "1/1000",
            "kilometer": "1000", "kilometre": "1000"}  # fmt: skip
_TIMES = {"s": "1", "sec": "1", "second": "1", "min": "60", "minute": "60", "h": "3600", "hr": "3600", "hour": "3600",
          "day": "86400", "week": "604800", "ms": "1/1000"}  # fmt: skip
_MASSES = {"mg": "1/1000", "g": "1", "gram": "1", "kg": "1000", "kilogram": "1000", "milligram": "1/1000"}
_VOLUMES = {"ml": "1/1000", "milliliter": "1/1000", "millilitre": "1/1000", "l": "1", "liter": "1", "litre": "1"}
_MONEY = {"cent": "1/100", "dollar": "1", "usd": "1"}
_KINDS = {"length": _LENGTHS, "time": _TIMES, "mass": _MASSES, "volume": _VOLUMES, "money": _MONEY}
UNIT_SIZES: Final[dict[str, tuple[str, Fraction]]] = {
    unit: (kind, Fraction(size)) for kind, sizes in _KINDS.items() for unit, size in sizes.items()
}
"""Units that can be converted into each other: what they measure, and how much of it."""


def size_of(unit: str) -> tuple[str, Fraction] | None:
    """What a unit measures and how much of it, where that is known."""
    return UNIT_SIZES.get(singular(unit), UNIT_SIZES.get(unit))


def singular(unit: str) -> str:
    """A unit in lower case without the endings of a plural and of an abbreviation."""
    words = [word.strip(".").removesuffix("s") if len(word) > 1 else word for word in unit.lower().split()]
    return " ".join({"inche": "inch", "feet": "foot", "ft": "foot"}.get(word, word) for word in words)
