"""The words of mathematical answers: functions, constants, units, and the small words between them."""

from __future__ import annotations

from typing import Final

__all__ = [
    "CONJUNCTIONS",
    "CONSTANTS",
    "DECORATION",
    "FUNCTION_NAMES",
    "GREEK",
    "RELATIONS",
    "SHORT_WORDS",
    "UNIT_LETTERS",
    "UNIT_SYMBOLS",
    "singular",
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

UNIT_SYMBOLS: Final = frozenset(
    "um ug us uF uA uV uC uL cL dL cl dl kL dm dg cg ng ns nC nm nA pF mJ MJ GJ TJ mT mN MN MV mC mF mWh MWh GWh "
    "mpg bpm ppm ppb wpm dpi gpm cfs "
    "hPa mbar keV TeV mmol kcal kbit Mbit Gbit GHz THz ha wk wks kn hp psi sec nmi tsp tbsp floz fl MeV rps mol "
    "ton yen won pie hat toy cow pig hen key bus ant bee fox owl row job kid die pea nut jar tin "
    "lot gem win tie run hit inn oak cub".split()
)
"""Symbols of units that are a unit behind a number and a space, and variables side by side elsewhere."""

DECORATION: Final = frozenset(
    "only exactly precisely just total totally altogether in of the a an them there is are be and each all both "
    "every respectively different distinct unique possible such various whole full overall approx approximately "
    "roughly about to for on at with by so it its this that these those your his her their our my from "
    "answer value number amount result".split()
)
"""Words beside an amount that do not change what it is."""
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
    if lower.endswith("ies") and len(lower) > 4:
        return lower[:-3] + "y"
    if lower.endswith(("ches", "shes", "xes", "sses", "zes")):
        return lower[:-2]
    return lower.removesuffix("s") if len(lower) > 2 and not lower.endswith(("ss", "us", "is")) else lower
