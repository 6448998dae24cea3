# SPDX-License-Identifier: Apache-2.0
"""Units: what they measure and how much of it, and the words beside them.

A table of exact fractions, not a unit library: `pint` takes half a second to load, computes in floats, and reads
"5 apples" as an error. Each unit has *sizes*, since a name may mean several things: a pound is a mass or money, an
ounce a mass or a volume. Two amounts agree if one size of each does.

    "km / h"      → one size, length¹ time⁻¹, factor 5/18
    "m north"     → one size, length¹, and the word "north"
    "red balls"   → no size, and the words "red", "ball"
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple

from reward_kit.answers.vocabulary import DECORATION, DENIALS, NAMES, SYNONYMS

__all__ = [
    "GENERIC",
    "SPOKEN",
    "STRANGE",
    "Size",
    "Unit",
    "is_known",
    "known_unit",
    "names_something",
    "read_unit",
    "same_nouns",
    "singular",
    "word_label",
]

Dimensions = tuple[tuple[str, int], ...]
"""Base quantities and their exponents, sorted; those with exponent zero are left out."""


class Size(NamedTuple):
    """How much of what a unit is: `factor` × π^`pi`, above `zero`."""

    dimensions: Dimensions
    factor: Fraction = Fraction(1)
    pi: int = 0
    zero: Fraction = Fraction(0)
    """Where the scale begins, for temperatures, in its own degrees."""


class Unit(NamedTuple):
    """What was read as the unit of an answer: the sizes it may have, and the words that are no unit."""

    sizes: tuple[Size, ...]
    """What it may be; empty where it names no known unit."""
    words: frozenset[str]
    """What else stands there, in the singular, without decoration."""
    unknown: frozenset[str] = frozenset()
    """Those of the words that are no known name of anything: nobody can say that they do not matter."""


GENERIC: Final = "unit"
"""The dimension of "units", which may be any length."""
_ONE: Final = Size(())


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _size(factor: str | Fraction | int, **dimensions: int) -> Size:
    return Size(tuple(sorted(dimensions.items())), Fraction(factor))


def _scaled(size: Size, factor: str | Fraction | int) -> Size:
    return size._replace(factor=size.factor * Fraction(factor))


_GRAVITY: Final = Fraction("9.80665")
_POUND: Final = _size("0.45359237", mass=1)
_FOOT: Final = _size("0.3048", length=1)
_GALLON: Final = _size("0.003785411784", length=3)
_FORCE: Final = {"mass": 1, "length": 1, "time": -2}
_ENERGY: Final = {"mass": 1, "length": 2, "time": -2}
_POWER: Final = {"mass": 1, "length": 2, "time": -3}
_PRESSURE: Final = {"mass": 1, "length": -1, "time": -2}
_VOLT: Final = {"mass": 1, "length": 2, "time": -3, "current": -1}
_DAY: Final = 86400
_MILE: Final = Fraction("1609.344")

# Symbol, name, size, the prefixes in use. Symbols are read as written, names in lower case and singular.
_WITH_PREFIXES: Final[tuple[tuple[str, str, Size, str], ...]] = (
    ("m", "meter", _size(1, length=1), "pnuµmcdhkMGT"),
    ("g", "gram", _size("1/1000", mass=1), "pnuµmcdhkMGT"),
    ("s", "second", _size(1, time=1), "pnuµmkMG"),
    ("L", "liter", _size("1/1000", length=3), "nuµmcdhkM"),
    ("l", "liter", _size("1/1000", length=3), "uµmcdk"),
    ("N", "newton", _size(1, **_FORCE), "uµmkMG"),
    ("J", "joule", _size(1, **_ENERGY), "nuµmkMGT"),
    ("W", "watt", _size(1, **_POWER), "nuµmkMGT"),
    ("Wh", "watt-hour", _size(3600, **_ENERGY), "kMGT"),
    ("V", "volt", _size(1, **_VOLT), "nuµmkMG"),
    ("A", "ampere", _size(1, current=1), "pnuµmkM"),
    ("Hz", "hertz", _size(1, time=-1), "mkMGT"),
    ("Pa", "pascal", _size(1, **_PRESSURE), "mhkMG"),
    ("eV", "electronvolt", _size("1.602176634e-19", **_ENERGY), "kMGT"),
    ("cal", "calorie", _size("4.184", **_ENERGY), "k"),
    ("mol", "mole", _size(1, amount=1), "pnuµmkM"),
    ("C", "coulomb", _size(1, current=1, time=1), "nuµm"),
    ("F", "farad", _size(1, mass=-1, length=-2, time=4, current=2), "pnuµm"),
    ("H", "henry", _size(1, mass=1, length=2, time=-2, current=-2), "nuµm"),
    ("T", "tesla", _size(1, mass=1, time=-2, current=-1), "nuµm"),
    ("Wb", "weber", _size(1, **{**_ENERGY, "current": -1}), "m"),
    ("Omega", "ohm", _size(1, **{**_VOLT, "current": -2}), "mkM"),
    ("bit", "bit", _size(1, data=1), "kMGT"),
    ("bar", "bar", _size(100_000, **_PRESSURE), "m"),
)
_PREFIXES: Final = {
    "p": ("pico", "1e-12"), "n": ("nano", "1e-9"), "u": ("micro", "1e-6"), "µ": ("micro", "1e-6"),
    "m": ("milli", "1e-3"), "c": ("centi", "1e-2"), "d": ("deci", "1e-1"), "h": ("hecto", "100"),
    "k": ("kilo", "1e3"), "M": ("mega", "1e6"), "G": ("giga", "1e9"), "T": ("tera", "1e12"),
}  # fmt: skip
_OTHERS: Final[dict[str, tuple[Size, ...]]] = {
    # length, area, volume
    "inch in": (_scaled(_FOOT, "1/12"),),
    "foot ft": (_FOOT,),
    "yard yd": (_scaled(_FOOT, 3),),
    "mile mi": (_size(_MILE, length=1),),
    "nautical_mile nmi": (_size(1852, length=1),),
    "light_year lightyear ly": (_size(9460730472580800, length=1),),
    "astronomical_unit AU": (_size(149597870700, length=1),),
    "angstrom": (_size("1e-10", length=1),),
    "micron": (_size("1e-6", length=1),),
    "hectare ha": (_size(10_000, length=2),),
    "acre": (_size(Fraction("0.3048") ** 2 * 43560, length=2),),
    "cc": (_size("1e-6", length=3),),
    "gallon gal": (_GALLON,),
    "quart qt": (_scaled(_GALLON, "1/4"),),
    "pint pt": (_scaled(_GALLON, "1/8"),),
    "cup": (_scaled(_GALLON, "1/16"),),
    "fluid_ounce fl_oz floz": (_scaled(_GALLON, "1/128"),),
    "tablespoon tbsp": (_scaled(_GALLON, "1/256"),),
    "teaspoon tsp": (_scaled(_GALLON, "1/768"),),
    # mass and force
    "pound": (_POUND, _size(1, GBP=1)),
    "lb lbm": (_POUND,),
    "ounce oz": (_scaled(_POUND, "1/16"), _scaled(_GALLON, "1/128")),
    "ton": (_scaled(_POUND, 2000), _size(1000, mass=1)),
    "tonne metric_ton": (_size(1000, mass=1),),
    "stone": (_scaled(_POUND, 14),),
    "carat": (_size("0.0002", mass=1),),
    "lbf pound_force": (_size(_POUND.factor * _GRAVITY, **_FORCE),),
    "dyne dyn": (_size("1e-5", **_FORCE),),
    # time
    "minute min": (_size(60, time=1),),
    "hour hr h": (_size(3600, time=1),),
    "sec": (_size(1, time=1),),
    "day": (_size(_DAY, time=1),),
    "week wk": (_size(7 * _DAY, time=1),),
    "fortnight": (_size(14 * _DAY, time=1),),
    "month": (_size(1, month=1),),
    "year yr": (_size(12, month=1), _size(365 * _DAY, time=1)),
    "decade": (_size(120, month=1),),
    "century": (_size(1200, month=1),),
    "millennium": (_size(12000, month=1),),
    # speed, rates
    "mpg": (_size(_MILE / _GALLON.factor, length=-2),),
    "mph": (_size(_MILE / 3600, length=1, time=-1),),
    "kph kmh kmph": (_size("5/18", length=1, time=-1),),
    "fps": (_size("0.3048", length=1, time=-1),),
    "knot kn": (_size(Fraction(1852, 3600), length=1, time=-1),),
    "rpm": (Size((("angle", 1), ("time", -1)), Fraction(2, 60), 1),),
    "rps": (Size((("angle", 1), ("time", -1)), Fraction(2), 1),),
    # energy, power, pressure
    "Nm": (_size(1, **_ENERGY),),
    "erg": (_size("1e-7", **_ENERGY),),
    "horsepower hp": (_size(550 * Fraction("0.3048") * _POUND.factor * _GRAVITY, **_POWER),),
    "atmosphere atm": (_size(101325, **_PRESSURE),),
    "mmHg": (_size("133.322387415", **_PRESSURE),),
    "torr": (_size(Fraction(101325, 760), **_PRESSURE),),
    "psi": (_size(_POUND.factor * _GRAVITY / Fraction("0.0254") ** 2, **_PRESSURE),),
    # electricity
    "amp": (_size(1, current=1),),
    "gauss": (_size("1e-4", mass=1, time=-2, current=-1),),
    # temperature
    "celsius centigrade degC C": (Size((("temperature", 1),), Fraction(1), 0, Fraction("-273.15")),),
    "fahrenheit degF F": (Size((("temperature", 1),), Fraction(5, 9), 0, Fraction("-459.67")),),
    "kelvin K": (_size(1, temperature=1),),
    # angles
    "degree deg": (Size((("angle", 1),), Fraction(1, 180), 1), Size((("temperature", 1),), Fraction(1))),
    "radian rad": (_size(1, angle=1),),
    "arcminute arcmin": (Size((("angle", 1),), Fraction(1, 180 * 60), 1),),
    "arcsecond arcsec": (Size((("angle", 1),), Fraction(1, 180 * 3600), 1),),
    "gradian gon": (Size((("angle", 1),), Fraction(1, 200), 1),),
    "revolution rev turn": (Size((("angle", 1),), Fraction(2), 1),),
    # data
    "byte B": (_size(8, data=1),),
    **{
        f"{symbol}B {symbol.upper()}B {name}byte": (_size(8 * 1000**power, data=1), _size(8 * 1024**power, data=1))
        for power, (symbol, name) in enumerate((("k", "kilo"), ("M", "mega"), ("G", "giga"), ("T", "tera")), 1)
    },
    # shares
    "ppm": (_size("1e-6", share=1),),
    "ppb": (_size("1e-9", share=1),),
    # money
    "dollar USD usd buck": (_size(1, USD=1),),
    "cent": tuple(_size("1/100", **{money: 1}) for money in ("USD", "EUR", "AUD", "CAD")),
    "euro EUR eur": (_size(1, EUR=1),),
    "GBP gbp": (_size(1, GBP=1),),
    "pence": (_size("1/100", GBP=1),),
    "penny": (_size("1/100", GBP=1), _size("1/100", USD=1)),
    "yen JPY": (_size(1, JPY=1),),
    "yuan CNY RMB rmb renminbi": (_size(1, CNY=1),),
    "rupee INR Rs rs": (_size(1, INR=1),),
    "AUD": (_size(1, AUD=1),),
    "CAD": (_size(1, CAD=1),),
    "franc CHF": (_size(1, CHF=1),),
    "won KRW": (_size(1, KRW=1),),
    "peso MXN": (_size(1, MXN=1),),
    "ruble RUB": (_size(1, RUB=1),),
    "unit": (_size(1, **{GENERIC: 1}),),
}


def _table() -> dict[str, tuple[Size, ...]]:
    found: dict[str, tuple[Size, ...]] = {}
    for names, sizes in _OTHERS.items():
        for name in names.split():
            found[name] = found.get(name, ()) + sizes
    for symbol, name, size, prefixes in _WITH_PREFIXES:
        found[symbol] = (size, *found.get(symbol, ()))
        found[name] = (size,)
        for prefix in prefixes:
            word, factor = _PREFIXES[prefix]
            found[prefix + symbol] = found[word + name] = (_scaled(size, factor),)
    return found


_TABLE: Final = _table()
_SPELLINGS: Final = Counter(name.lower() for name in _TABLE)
_LOWER: Final = {
    name.lower(): sizes
    for name, sizes in _TABLE.items()
    if len(name) > 1 and _SPELLINGS[name.lower()] == 1 and (len(name) > 2 or name[0] not in "pnuµ")
}
_PREFIXED: Final = frozenset(prefix + symbol for symbol, *_ in _WITH_PREFIXES for prefix in _PREFIXES)
"""Symbols whose letters say how large they are: a Pg is no pg."""
_POWERS: Final = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_AFTERWARDS: Final = {"squared": 2, "cubed": 3}
_PHRASES: Final = (
    (re.compile(r"\bfl(?:uid)? o(?:unces?|z)\b"), "fluid_ounce"),
    (re.compile(r"\bnautical miles?\b"), "nautical_mile"),
    (re.compile(r"\blight[ -]{1,3}years?\b"), "light_year"),
    (re.compile(r"\bmetric tons?\b"), "metric_ton"),
    (re.compile(r"\bastronomical units?\b"), "astronomical_unit"),
    (re.compile(r"\b(?:pounds?|lbs?)[ -]{1,3}force\b"), "pound_force"),
    (re.compile(r"\belectron[ -]volts?\b"), "electronvolt"),
    (re.compile(r"\b(kilo)?watt[ -]hours?\b"), r"\1watt-hour"),
    (re.compile(r"\b(?:deg(?:ree)?s?|°) ([Cc]elsius|[Ff]ahrenheit|[CFK]\b)"), r"\1"),
    (re.compile(r"\b(?:US|us) (?=dollar)"), ""),
)
_MOST_SIZES: Final = 16


@lru_cache(1024)
def read_unit(text: str) -> Unit:
    """The unit that `text` names, as far as it is known, and the words that are none."""
    for phrase, meant in _PHRASES:
        text = phrase.sub(meant, text)
    words = text.replace("°", " degree ").split()
    sizes: tuple[Size, ...] = (_ONE,)
    unknown: list[str] = []
    at, sign, power, fraction = 0, 1, 1, words[:1] in (["frac"], ["dfrac"], ["tfrac"])
    seen = False
    while at < len(words):
        word = words[at]
        at += 1
        if word in ("/", "per") or (word in ("a", "an") and seen and at < len(words)):  # miles an hour
            sign = -1
        elif word in ("*", "cdot", "times", "frac", "dfrac", "tfrac", "-", "^"):
            continue
        elif word.lower().strip(".") in _POWERS:
            power = _POWERS[word.lower().strip(".")]
        elif (found := _sizes(word, first=not seen and not unknown, last=at == len(words))) is not None:
            exponent, at = _exponent(words, at)
            if word == "ms" and exponent < 0:  # m s⁻¹ without its space, rather than milliseconds
                sizes, found = _times(sizes, _TABLE["m"], sign), _TABLE["s"]
            sizes = _times(sizes, found, sign * power * exponent)
            sign, power, seen = (-1 if fraction else 1), 1, True
        elif not word.isdigit():
            noun = singular(word)
            if noun not in DECORATION and not (noun == "more" and at < len(words)):
                unknown.append(f"per {noun}" if sign < 0 else noun)
            sign = 1
    return Unit(sizes if seen else (), frozenset(unknown), frozenset(filter(_is_strange, unknown)))


def _is_strange(noun: str) -> bool:
    return noun.removeprefix("per ") not in NAMES


def is_known(word: str) -> bool:
    """Whether a word beside a value is decoration, a unit or the name of something."""
    noun = singular(word)
    return (
        noun in DECORATION
        or noun in NAMES
        or word.lower() in DECORATION
        or _sizes(word, first=True, last=True) is not None
    )


def _exponent(words: list[str], at: int) -> tuple[int, int]:
    """The exponent of the unit before `at`, and where it ends."""
    if at < len(words) and words[at].lower() in _AFTERWARDS:
        return _AFTERWARDS[words[at].lower()], at + 1
    if at < len(words) and words[at] in ("2", "3"):
        return int(words[at]), at + 1
    if at >= len(words) or words[at] != "^":
        return 1, at
    negative = at + 1 < len(words) and words[at + 1] == "-"
    digits = words[at + 1 + negative] if at + 1 + negative < len(words) else ""
    if not digits.isdigit() or len(digits) > 1:
        return 1, at + 1
    return (-int(digits) if negative else int(digits)), at + 2 + negative


def _sizes(word: str, *, first: bool, last: bool) -> tuple[Size, ...] | None:
    if word == "in" and not (first and last):
        return None  # in total, in all
    if word in ("a", "A") and not first:
        return None
    found = _TABLE.get(word)
    if found is not None:
        return found
    if word in _PREFIXED:
        return None
    name = _one(word)
    return _TABLE.get(name) or _LOWER.get(name)


def names_something(words: list[str]) -> bool:
    """Whether some words name a value: `the number of bricks in the box`. What follows "of" only says whose."""
    for at, word in enumerate(words):
        if at and word.lower() in _OF_WHAT:
            return not any(rest.lower() in DENIALS or rest.lower().endswith("n't") for rest in words[at:])
        if (len(word) > 1 or not word.isascii()) and not is_known(word) and word.lower() not in SYNONYMS:
            return False
    return True


def word_label(words: Iterable[str]) -> str:
    """How a name of some words is kept as a symbol; empty where they say nothing of their own."""
    said = [word for word in words if word != "_"]
    kept = [SYNONYMS.get(word, word) for word in map(singular, said) if word not in DECORATION and word != "be"]
    return f"{SPOKEN if names_something(said) else STRANGE}{' '.join(kept)}" if kept else ""


SPOKEN: Final = "·"
"""What the symbol of a name in words begins with."""
STRANGE: Final = "?"
"""What it begins with where some of the words are not known."""
_OF_WHAT: Final = frozenset("of that which in for to between when from with on at who".split())


def _one(word: str) -> str:
    """A name of a unit in lower case, singular, in American spelling."""
    lower = word.lower().strip(".")
    if lower.endswith("metres") or lower.endswith("metre"):
        lower = lower.replace("metre", "meter")
    if lower.endswith("litres") or lower.endswith("litre"):
        lower = lower.replace("litre", "liter")
    return _IRREGULAR.get(lower) or singular(lower)


_IRREGULAR: Final = {
    "feet": "foot", "inches": "inch", "hertz": "hertz", "celsius": "celsius", "lbs": "lb", "centuries": "century",
    "millennia": "millennium", "pennies": "penny", "siemens": "siemens", "hrs": "hr", "yrs": "yr", "gauss": "gauss",
    "fps": "fps", "rps": "rps", "pence": "pence", "mins": "min", "secs": "sec",
}  # fmt: skip


def _times(left: tuple[Size, ...], right: tuple[Size, ...], exponent: int) -> tuple[Size, ...]:
    return tuple(_multiplied(one, other, exponent) for one, other in product(left, right))[:_MOST_SIZES]


def _multiplied(left: Size, right: Size, exponent: int) -> Size:
    dimensions = dict(left.dimensions)
    for name, power in right.dimensions:
        dimensions[name] = dimensions.get(name, 0) + power * exponent
    alone = left == _ONE and exponent == 1
    kept = tuple(sorted((name, power) for name, power in dimensions.items() if power))
    return Size(
        kept, left.factor * right.factor**exponent, left.pi + right.pi * exponent, right.zero if alone else Fraction(0)
    )


def known_unit(text: str) -> bool:
    """Whether `text` is a known unit and nothing else."""
    unit = read_unit(text)
    return bool(unit.sizes) and not unit.words


def same_nouns(ours: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether two amounts count the same: one may say more than the other, but not something else."""
    return ours <= theirs or theirs <= ours


# ── words beside an amount ───────────────────────────────────────────────────────────────────────────────────────────

UNIT_LETTERS: Final = frozenset("m s h g l L N J W V A K C F T u Omega".split())
"""Letters that may be a unit directly after a number."""
_PLURALS: Final = {
    "people": "person", "men": "man", "women": "woman", "children": "child", "mice": "mouse", "geese": "goose",
    "teeth": "tooth", "dice": "die", "feet": "foot", "inches": "inch", "halves": "half", "losses": "loss",
    "vertices": "vertex", "matrices": "matrix", "indices": "index", "loaves": "loaf", "knives": "knife",
    "wolves": "wolf", "leaves": "leaf", "shelves": "shelf", "lives": "life", "wives": "wife", "oxen": "ox",
    "centuries": "century",
}  # fmt: skip


def singular(word: str) -> str:
    """A noun in lower case and in the singular, as far as its ending tells."""
    lower = word.lower().strip(".")
    if lower in _PLURALS:
        return _PLURALS[lower]
    if lower in NAMES and not (lower.endswith("s") and lower[:-1] in NAMES):
        return lower
    for ending in ("s", "es"):
        if lower.endswith(ending) and lower.removesuffix(ending) in NAMES:
            return lower.removesuffix(ending)
    if lower.endswith("ies") and len(lower) > 4:
        return lower[:-3] + "y"
    if lower.endswith(("ches", "shes", "xes", "sses", "zes")):
        return lower[:-2]
    return lower.removesuffix("s") if len(lower) > 2 and not lower.endswith(("ss", "us", "is")) else lower
