"""Do two answers mean the same? One table per kind of answer: pairs that do, and pairs that do not.

Each pair is judged both ways round: the verdict must not depend on which one is the gold.
"""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reward_kit.rewards._support.mathematics.dimensions import _TABLE, GENERIC, read_unit
from reward_kit.rewards._support.mathematics.equivalence import equivalent

Pairs = list[tuple[str, str]]

EQUAL: dict[str, Pairs] = {
    "words": [
        ("a line", "line"), ("a circle", "the circle"), ("Yes", "yes"), ("x increases", "x increases."),
        ("A wins", "A wins."), ("a maximum", "maximum"), ("5 apples", "5"), ("12 people", "12 persons"),
        ("3 heads", "3 heads"), ("1 child", "1 children"), ("4 men", "4 man"), ("the median", "median"),
        ("no solution", "There is no solution"), ("no real solutions", r"\emptyset"), ("an ellipse", "ellipse"),
        ("5 more apples", "5 apples"), ("6 sides", "6"), ("a parabola", "Parabola"), ("Monday", "monday"),
        ("isosceles triangle", "an isosceles triangle"), ("5 boxes", "5 box"), ("12 girls", "12 girls"),
        ("Alice", "alice"), ("7 ways", "7"), ("20 students", "20 students in total"), ("exactly 7 ways", "7 ways"),
        ("3 red balls", "3 red balls"), ("none", "None"), ("15 years old", "15 years"),
        ("5 m north", "5 meters north"), ("10 km east", "10 km to the east"), ("3 m to the left", "3 m left"),
    ],
    "units": [
        ("36 km/h", "10 m/s"), ("10,000 cm²", "1 m²"), ("10000 cm^2", "1 m^2"), ("1 kWh", "3.6 MJ"),
        ("90 degrees", r"\frac{\pi}{2}"), ("90°", "π/2"), ("90 degrees", "pi/2 radians"), ("1 year", "12 months"),
        ("3 ft", "1 yd"), ("3 feet", "1 yard"), ("1 L", "1000 cm³"), ("1 L", "1 dm^3"), ("1 mL", "1 cm^3"),
        ("1000 L", "1 m^3"), ("2 hours", "120 min"), ("2 hours", "7200 s"), ("1 week", "7 days"),
        ("1 mile", "5280 feet"), ("1 lb", "16 oz"), ("2 pounds", "32 ounces"), ("1 ton", "2000 pounds"),
        ("1 tonne", "1000 kg"), ("1 gallon", "4 quarts"), ("1 quart", "2 pints"), ("2 cups", "1 pint"),
        ("1 N", "1 kg m/s^2"), ("1 J", "1 N m"), ("1 J", "1 N·m"), ("1 W", "1 J/s"), ("1 Pa", "1 N/m^2"),
        ("1000 W", "1 kW"), ("1 kHz", "1000 Hz"), ("5 kg", "5000 g"), ("5 kg", "5 kilograms"), ("60 mph", "88 ft/s"),
        ("60 mph", "60 miles per hour"), ("60 mi/h", "60 mph"), ("50 km/h", "50 kilometers per hour"),
        ("50 kph", "50 km/h"), ("5 square meters", "5 m^2"), ("5 sq ft", "5 ft²"), ("5 cubic feet", "5 ft^3"),
        ("5 cubic centimeters", "5 cm^3"), ("9.8 m/s^2", r"9.8\ \mathrm{m\,s^{-2}}"), ("5 m", "5"), ("5 kg", "5"),
        ("100 cm", "1 m"), ("1.5 m", "150 cm"), ("2.5 km", "2500 m"), ("1 hectare", "10000 m^2"),
        ("1 acre", "43560 sq ft"), ("1 sq yd", "9 sq ft"), ("1 km^2", "1000000 m^2"), ("1 g/cm^3", "1000 kg/m^3"),
        ("72 km/h", "20 m/s"), ("1 decade", "10 years"), ("1 century", "100 years"), ("1 day", "24 hours"),
        ("180 degrees", r"\pi"), ("0.5 hours", "30 minutes"), ("12 in", "1 ft"), ("12 inches", "1 foot"),
        ("5 °C", "5 degrees Celsius"), ("5°C", "5"), ("100 °C", "100 Celsius"), ("300 K", "300 kelvin"),
        ("5 V", "5 volts"), ("2 A", "2 amperes"), ("2 mA", "0.002 A"), ("4 ohms", r"4\ \Omega"), ("1 kJ", "1000 J"),
        ("3 eV", "3 electronvolts"), ("1 dozen", "12"), ("2 dozen eggs", "24 eggs"), ("5 newtons", "5 N"),
        ("5 joules", "5 J"), ("1 atm", "101325 Pa"), ("1 bar", "100 kPa"), ("1 GB", "1000 MB"), ("1 byte", "8 bits"),
        ("1 revolution", "360 degrees"), ("60 rpm", "1 rev/s"), ("8 units", "8"), ("8 square units", "8"),
        ("5 cubic units", "5 units^3"), ("6 liters", "6 litres"), ("5 m/s", "5 meters per second"),
        ("0.25 mol", "250 mmol"), ("4 mm", "0.4 cm"), ("1 hour 30 minutes", "90 minutes"),
        ("1.5 hours", "1 hour and 30 minutes"), ("2 m 50 cm", "2.5 m"),
    ],
    "money": [
        ("$5", "5 dollars"), (r"\$5", "5"), ("€5", "5 euros"), ("£5", "5 pounds"), ("$5", "500 cents"),
        ("50 cents", "$0.50"), ("¥100", "100 yen"), ("$1,200", "1200 dollars"), ("$5.00", "$5"), ("5 USD", "$5"),
        ("€3.50", "3.50 EUR"), ("25¢", "25 cents"), ("US$18", "$18"), ("$4 per hour", "$4/hour"),
        ("$2.5 million", "2500000 dollars"), ("₹500", "500 rupees"), ("4 quarters", "4"), ("£1", "100 pence"),
        ("$-5", "-$5"), ("€1", "100 cents"),
    ],
    "percentages and ratios": [
        ("50%", "0.5"), ("50%", "50"), ("50 percent", "50%"), (r"12.5\%", "1/8"), ("1 in 4", "1/4"),
        ("1 in 4", "0.25"), ("1 in 4", "25%"), ("1 out of 4", r"\frac{1}{4}"), ("3 out of 10", "30%"), ("2:3", "4:6"),
        ("2 to 3", "2:3"), ("3:4", "3/4"), ("1:2:3", "2:4:6"), ("33 1/3 %", r"\frac{1}{3}"), ("3 in 5", "0.6"),
        ("2 out of every 5", "2/5"),
    ],
    "times and dates": [
        ("3:45 PM", "15:45"), ("3:45 p.m.", "3:45 PM"), ("7 o'clock", "7:00"), ("noon", "12:00 PM"),
        ("midnight", "12:00 AM"), ("March 5, 2020", "5 March 2020"), ("2020-03-05", "March 5, 2020"),
        ("Monday, May 4", "May 4"), ("January 1st", "1 January"), ("8 am", "8:00 AM"), ("4th of July", "July 4"),
    ],
    "numbers": [
        ("1,234", "1234"), ("1.234,5", "1234.5"), ("1.234.567", "1234567"), ("0,5", "0.5"), ("3,14159", "3.14159"),
        ("12,5 %", "12.5%"), ("3,5 cm", "3.5 cm"), ("1 1/2", "1.5"), ("2 3/4", "11/4"), (r"3\frac{1}{2}", "7/2"),
        ("3.2e5", "320000"), (r"3.2 \times 10^5", "320,000"), ("6.02x10^23", r"6.02 \cdot 10^{23}"), ("1e-3", "0.001"),
        ("twenty-one", "21"), ("three quarters", "0.75"), ("one hundred and five", "105"), ("0.333...", "1/3"),
        (r"0.\overline{3}", "1/3"), (r"0.1\overline{6}", "1/6"), ("1 000 000", "1000000"), ("2^10", "1024"),
        ("-3", "(-3)"), ("+5", "5"), ("5!", "120"), ("10^6", "1 million"), ("2.5 million", "2500000"),
        (r"\binom{5}{2}", "10"), ("1011_2", "1011"), ("0.125", r"\frac18"), (".5", "1/2"), ("7.0", "7"),
        ("1.234.567,89", "1234567.89"), ("-0,25", "-0.25"),
    ],
    "does not exist": [
        ("DNE", "does not exist"), ("DNE", "The limit does not exist"), ("undefined", "not defined"),
        ("does not exist", "doesn't exist"), ("DNE", "no limit"), (r"\text{DNE}", "Does not exist."),
        ("undefined", "DNE"), ("the limit does not exist", "limit doesn't exist"), ("undefined", "is undefined"),
    ],
    "sets": [
        (r"\{1, 2\}", r"\{2, 1\}"), ("{1,2,3}", "{3,2,1}"), (r"\{(1,2)\}", "(1,2)"), (r"\{1,\{2\}\}", r"\{\{2\},1\}"),
        (r"\emptyset", r"\{\}"), (r"\{1,1,2\}", r"\{1,2\}"),
        (r"\mathbb{R} \setminus \{0\}", r"(-\infty,0)\cup(0,\infty)"),
        ("all real numbers except 0", r"\mathbb{R}\setminus\{0\}"), ("all reals except 0", "x ≠ 0"),
        (r"\mathbb{R}\setminus\{1,2\}", r"(-\infty,1)\cup(1,2)\cup(2,\infty)"), ("R \\ {0}", "x != 0"),
        (r"\mathbb{R} - \{3\}", "all real numbers except 3"), (r"[0,5]\setminus\{2\}", r"[0,2)\cup(2,5]"),
        (r"\{1,2,3,4\}\setminus\{2,4\}", r"\{1,3\}"), (r"\{x : x > 3\}", r"(3,\infty)"),
        (r"\{1,2\}\cup\{3\}", r"\{1,2,3\}"), (r"\{1,2,3\}\cap\{2,3,4\}", r"\{2,3\}"),
        (r"\{\{1,2\},\{3\}\}", r"\{\{3\},\{2,1\}\}"), (r"\{(1,2),(3,4)\}", r"\{(3,4),(1,2)\}"),
        ("(1,2), (3,4)", "(3,4), (1,2)"), (r"[1,3]\setminus(1,3)", r"\{1,3\}"),
        ("all real numbers", r"(-\infty,\infty)"), ("all real numbers except 2 and 3", r"\mathbb{R}\setminus\{2,3\}"),
        (r"[0,1]\cup[1,2]", "[0,2]"), ("all real numbers except x = 1", "x ≠ 1"), ("the empty set", r"\varnothing"),
    ],
    "inequalities": [
        ("x > 2 or x < -2", r"(-\infty,-2)\cup(2,\infty)"), ("x^2 > 4", r"(-\infty,-2)\cup(2,\infty)"),
        ("|x| > 2", "x^2 > 4"), ("|x| < 2", "-2 < x < 2"), ("x^2 \\le 9", "[-3,3]"), ("x > 0 and x < 5", "(0,5)"),
        ("0 < x < 1", "x > 0 and x < 1"), ("x \\ge 3", r"[3,\infty)"), ("x < 1 or x > 3", "x > 3 or x < 1"),
        ("2x + 1 > 5", "x > 2"), ("-x < 3", "x > -3"), ("3 > x", "x < 3"), ("x >= 3", "3 <= x"),
        ("|x - 1| < 2", "(-1, 3)"), ("|x-3| \\ge 1", r"(-\infty,2]\cup[4,\infty)"), ("x^2 < 1", "|x| < 1"),
        ("(x-1)(x-3) < 0", "1 < x < 3"), ("x^2 - 4 > 0", "|x| > 2"), ("x \\le -1 \\text{ or } x \\ge 1", "x^2 \\ge 1"),
        ("x > 2 and x < 4", "2 < x < 4"), ("x < 0 or x > 0", "x \\ne 0"), ("x+y > 2", "2 < x + y"),
        ("x^2 + x - 6 < 0", "(-3, 2)"), ("|2x| < 6", "(-3,3)"), ("x is greater than 3", "x > 3"),
        ("x > 1, x < 2", "(1,2)"),
    ],
    "equations": [
        ("y = 2x + 1", "2x - y + 1 = 0"), ("x + y = 3", "2x + 2y = 6"), ("y = |x|", r"y = \sqrt{x^2}"),
        ("x^2 + y^2 = 4", "y^2 = 4 - x^2"), ("y = x/2", "x = 2y"), ("y = -3x", "3x + y = 0"), ("x = 3", "3"),
        ("y - 1 = 2(x - 1)", "y = 2x - 1"), ("y = \\max(x, -x)", "y = |x|"), ("f(x) = 2x", "y = 2x"),
        ("x = 2", "2 = x"), ("(x-1)^2 + (y-2)^2 = 9", "x^2 + y^2 - 2x - 4y - 4 = 0"), ("xy = 1", "y = 1/x"),
        ("3x + 4y = 12", "y = 3 - 3x/4"),
    ],
    "tuples with labels": [
        ("(x,y) = (1,2)", "(1,2)"), ("(x,y) = (1,2)", "(y,x) = (2,1)"), ("x = 1, y = 2", "y = 2, x = 1"),
        ("x = 1, y = 2", "(x,y) = (1,2)"), ("x = 1 and y = 2", "(1, 2)"), ("(a,b,c) = (1,2,3)", "(c,b,a) = (3,2,1)"),
        ("a = 1, b = 2, c = 3", "(a, c, b) = (1, 3, 2)"), ("(p, q) = (3, 5)", "p = 3, q = 5"),
        ("(x, y) = (1, 2)", "x=1,\\ y=2"), ("A = (1,2)", "A(1,2)"), ("(m,n)=(2,1)", "n=1, m=2"),
    ],
    "families": [
        (r"\frac{\pi}{2} + k\pi, k \in \mathbb{Z}", r"\frac{\pi}{2} + n\pi, n \in \mathbb{Z}"),
        (r"\frac{\pi}{2} + k\pi", r"\frac{\pi}{2} + n\pi"), (r"\frac{\pi}{2}+k\pi", r"k\pi - \frac{\pi}{2}"),
        (r"x = \frac{\pi}{2}+k\pi, k\in\mathbb{Z}", r"x = n\pi - \frac{\pi}{2}, n\in\mathbb{Z}"),
        ("2k+1, k \\in \\mathbb{Z}", "2n-1, n \\in \\mathbb{Z}"), ("2k+1", "2k-1"), (r"2\pi n", r"2 k \pi"),
        (r"\frac{\pi}{4}+\frac{k\pi}{2}", r"\frac{\pi}{4}+\frac{\pi n}{2}"),
        ("3k+2, k \\in \\mathbb{Z}", "3n-1, n \\in \\mathbb{Z}"),
        (r"-\frac{\pi}{3}+2k\pi, k\in\mathbb{Z}", r"\frac{5\pi}{3}+2n\pi, n\in\mathbb{Z}"), (r"x = k\pi", r"x = n\pi"),
        (r"60° + 180°k", r"60° + 180°n"), ("k\\pi, k \\in \\mathbb{Z}", "-k\\pi, k\\in\\mathbb{Z}"),
        (r"\pm\frac{\pi}{3} + 2k\pi", r"2n\pi \pm \frac{\pi}{3}"),
        (
            r"x = \frac{\pi}{6} + 2k\pi \text{ or } x = \frac{5\pi}{6} + 2k\pi",
            r"x = \frac{5\pi}{6} + 2n\pi \text{ or } x = \frac{\pi}{6} + 2n\pi",
        ),
    ],
    "lists": [
        ("red, blue", "blue and red"), ("red and blue", "red, blue"), ("1, 2", "2, 1"), ("1 and 2", "2 and 1"),
        ("x = 1 or x = 2", "x = 2 or x = 1"), ("Alice, Bob and Carol", "Carol, Alice, Bob"), ("±3", "3, -3"),
        ("1, 2, and 3", "3, 2, 1"), ("x = 1, 2", "x = 2, 1"), ("cats and dogs", "dogs, cats"), ("A, C", "C, A"),
    ],
    "formulas": [
        ("(x+1)^2", "x^2+2x+1"), (r"\sin^2 x + \cos^2 x", "1"), (r"\sin 2x", r"2\sin x\cos x"),
        ("a^2-b^2", "(a-b)(a+b)"), (r"\ln 8", r"3\ln 2"), (r"\log_2 8", "3"), (r"\sqrt{8}", r"2\sqrt{2}"),
        (r"\frac{1}{\sqrt{2}}", r"\frac{\sqrt{2}}{2}"), (r"\tan x", r"\frac{\sin x}{\cos x}"), ("e^{2x}", "(e^x)^2"),
        ("2 + 3i", "3i + 2"), ("i^2", "-1"), (r"e^{i\pi}", "-1"), (r"\frac{x^2-1}{x+1}", "x-1"), ("x(x-1)", "x^2 - x"),
        (r"\sqrt[3]{27}", "3"), ("2^{x+1}", r"2 \cdot 2^x"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "[[1,2],[3,4]]"), ("f(x) = x^2 + C", "x^2 + c"),
        (r"\frac{1+i}{1-i}", "i"), (r"\cos(60^\circ)", "1/2"), (r"|-3|", "3"), ("log(100)", "2"),
        (r"\sum_{k=1}^{10} k", "55"), (r"\sum_{k=1}^{n} k", "n(n+1)/2"), (r"\sum_{n=1}^{\infty} \frac{1}{2^n}", "1"),
        (r"\prod_{k=1}^{5} k", "120"), (r"\sum_{n=1}^{\infty} \frac{1}{n^2}", r"\frac{\pi^2}{6}"),
    ],
    "of every kind": [
        ("5 kilometers", "5000 m"), ("100 km/h", "100 kilometres per hour"), ("2 kg", "2000 grams"), ("3 dozen", "36"),
        ("4 quarts", "1 gallon"), ("0 °C", "32 °F"), ("45 degrees", r"\pi/4"),
        ("45°", r"\frac{\pi}{4} \text{ radians}"), ("1 kWh", "3600000 J"), ("$12.50", "12.5 dollars"),
        ("£20", "20 GBP"), ("1 in 6", r"\frac{1}{6}"), ("1 out of 6", "1/6"),
        ("blue, red, green", "red, green and blue"), ("Does not exist", "DNE"),
        (r"(-\infty,-3]\cup[3,\infty)", r"x^2 \ge 9"),
        (r"\mathbb{R}\setminus\{-1,1\}", "all real numbers except -1 and 1"),
        (r"x \in \mathbb{R}, x \neq 2", r"(-\infty,2)\cup(2,\infty)"),
        (r"\pi k - \frac{\pi}{4}, k\in\mathbb{Z}", r"\frac{3\pi}{4}+\pi n, n\in\mathbb{Z}"),
        (r"2k-1, k\in\mathbb{Z}", r"2k+1, k\in\mathbb{Z}"), ("(x,y)=(3,4)", "x=3,y=4"), ("(y,x)=(4,3)", "x=3, y=4"),
        ("7 boxes", "7 boxes."), ("15 cm²", "15 square centimeters"), ("15 cm²", "0.0015 m²"), ("9 m/s²", "9 m/s^2"),
        ("1.5 × 10^3 m", "1.5 km"), ("|x|>3", "x<-3 or x>3"), (r"x<-3 \text{ or } x>3", r"(-\infty,-3)\cup(3,\infty)"),
        ("5 liters", "5000 ml"), ("2 weeks", "14 days"), ("18 months", "1.5 years"),
        ("x = π/3 + 2πk", "x = 2πn + π/3"), ("an increase", "increase"), ("the x-axis", "x-axis"),
        ("1 N", "1 kg*m/s^2"), ("3 m/s", "10.8 km/h"), ("1,5 kg", "1.5 kg"), ("1.000.000", "1000000"),
        ("2 tablespoons", "6 teaspoons"), ("$3 million", "$3,000,000"), ("75 cents", "$0.75"),
        ("12 persons", "12 people"), ("2 hours 15 minutes", "135 min"), ("y=2x+3", "y-2x-3=0"), ("no limit", "DNE"),
        ("undefined", "Undefined"), (r"\{1,3,5\}", "1, 3, 5"), ("x=±2", "x=2 or x=-2"), ("4 in³", "4 cubic inches"),
        ("10 lb", "10 pounds"), ("98.6 °F", "37 °C"), ("50 °", "50 degrees"), ("12 a.m.", "midnight"),
        ("n = 2k, k ∈ Z", "n = 2m, m ∈ Z"),
    ],
}  # fmt: skip

DIFFERENT: dict[str, Pairs] = {
    "words": [
        ("a line", "a circle"), ("a maximum", "a minimum"), ("x increases", "x decreases"), ("A wins", "A loses"),
        ("3 heads", "3 tails"), ("5 m north", "5 m south"), ("5 apples", "5 oranges"), ("a parabola", "a hyperbola"),
        ("A is taller", "A is shorter"), ("a square", "a rectangle"), ("x converges", "x diverges"),
        ("p is true", "p is false"), ("5 boys", "5 girls"), ("3 red balls", "3 blue balls"),
        ("10 km east", "10 km west"), ("x is even", "x is odd"), ("yes", "no"), ("Alice", "Bob"), ("red", "blue"),
        ("a rational number", "an irrational number"), ("Monday", "Tuesday"), ("2 men", "2 women"),
        ("B is larger", "B is smaller"), ("a sphere", "a cube"), ("6 wins", "6 losses"),
        ("3 units up", "3 units down"), ("5 to the left", "5 to the right"), ("clockwise", "counterclockwise"),
        ("f is injective", "f is surjective"), ("n is prime", "n is composite"), ("a point", "a plane"),
        ("4 dogs", "4 cats"), ("the mean", "the median"), ("positive", "negative"),
        ("not enough information", "enough information"), ("an odd function", "an even function"),
        ("a increases", "b increases"), ("2 adults", "2 children"), ("the first", "the second"),
        ("A beats B", "B beats A"), ("3 more", "3 fewer"), ("10 m above", "10 m below"),
        ("P(A) increases", "P(A) decreases"), ("y doubles", "y halves"), ("5 km uphill", "5 km downhill"),
        ("possible", "impossible"), ("30° clockwise", "30° counterclockwise"), ("5 hits", "5 misses"),
        ("2 even", "2 odd"), ("x is positive", "x is negative"), ("10% increase", "10% decrease"),
        ("$5 profit", "$5 loss"), ("3 hours later", "3 hours earlier"), ("a gain of $5", "a loss of $5"),
        ("first quadrant", "second quadrant"),
    ],
    "units": [
        ("5 m^2", "5 m^3"), ("5 m²", "5 m"), ("5 m³", "5 m"), ("5 kg", "5 lbs"), ("60 mph", "60 km/h"), ("5 N", "5 J"),
        ("20 °C", "20 °F"), ("20°C", "20°F"), ("90 degrees", "90 radians"), ("2 radians", "2 degrees"),
        ("5 ounces", "5 pounds"), ("5 square meters", "5 meters"), ("5 cubic feet", "5 square feet"),
        ("10 cm", "10 mm"), ("3 hours", "3 minutes"), ("5 W", "5 J"), ("2 kW", "2 kWh"), ("5 m/s", "5 m/s^2"),
        ("5 V", "5 A"), ("3 L", "3 mL"), ("7 days", "7 weeks"), ("1 year", "10 months"), ("36 km/h", "36 m/s"),
        ("5 miles", "5 km"), ("4 g", "4 kg"), ("100 Pa", "100 kPa"), ("5 Hz", "5 s"), ("1 MJ", "1 kWh"),
        ("12 ft", "12 in"), ("3 gallons", "3 liters"), ("8 bits", "8 bytes"), ("10 mph", "10 m/s"), ("5 N/m", "5 N m"),
        ("20 K", "20 °C"), ("100 cm^2", "1 m^2"), ("1 m^3", "100 L"), ("6 sq ft", "6 sq yd"), ("5 hours", "5 years"),
        ("5 kg/m^3", "5 g/cm^3"), ("10 dollars per hour", "10 dollars per day"), ("5 mol", "5 mmol"), ("2 MW", "2 GW"),
        ("3 ohms", "3 volts"), ("5 km", "5 kg"), ("90°", "90 radians"), ("5 cm", "5 inches"), ("40 cm^2", "40 cm^3"),
        ("30 minutes", "30 seconds"), ("2 decades", "2 centuries"), ("3 tons", "3 kg"),
        ("5 meters", "5 meters per second"), ("4 mi/h", "4 ft/s"), ("1 hour", "100 minutes"),
        ("5 feet 6 inches", "5.6 feet"), ("5 calories", "5 joules"),
    ],
    "money": [
        ("€5", "$5"), ("$5", "£5"), ("€5", "£5"), ("$5", "5 cents"), ("$5", "5%"), ("5 euros", "5 dollars"),
        ("¥5", "$5"), ("$5", "5 kg"), ("£5", "5 pence"), ("$5", "$50"), ("5 cents", "5 dollars"), ("25¢", "$25"),
        ("₹100", "$100"), ("$5", "5 m"), ("$10 per hour", "$10 per day"), ("€100", "100 dollars"), ("5 USD", "5 EUR"),
        ("$2.5 million", "$2.5 billion"),
    ],
    "percentages and ratios": [
        ("50%", "0.05"), ("5%", "5 cents"), ("1 in 4", "4"), ("1 in 4", "1/5"), ("2:3", "3:2"),
        ("3 out of 10", "10/3"), ("25%", "25 kg"), ("1:2:3", "3:2:1"), ("1 out of 4", "1"), ("5 percent", "5 degrees"),
        ("1 in 4", "1"),
    ],
    "times and dates": [
        ("3:45 PM", "3:45 AM"), ("3:45", "3:54"), ("March 5", "March 6"), ("March 5, 2020", "March 5, 2021"),
        ("noon", "midnight"), ("8 am", "8 pm"), ("15:45", "3:45 AM"), ("5 March", "3 May"), ("12:30", "12.30"),
        ("7:00", "7 hours"), ("Monday", "Friday"),
    ],
    "numbers": [
        ("1,234", "1.234"), ("3,5", "3.5"), ("2,5", "2.5"), ("1 1/2", "11/2"), ("3.2e5", "3.2e4"), ("1/3", "0.33"),
        ("2 3/4", "6/4"), ("1,234.5", "1.2345"), ("12", "21"), ("-5", "5"), ("2^10", "2^11"),
        (r"\frac{2}{3}", r"\frac{3}{2}"), ("0.1", "0.01"), ("10^6", "10^5"), ("twenty", "twelve"), ("1,000", "1"),
        ("5!", "5"), ("1,000", "1.000"), ("6.02x10^23", "6.02x10^22"), ("12,345", "12.345"), ("7,25", "7.25"),
    ],
    "does not exist": [
        ("DNE", "0"), ("does not exist", "exists"), ("DNE", r"\infty"), ("undefined", "0"), ("no limit", "1"),
        ("DNE", "D"), ("does not exist", "does exist"), ("undefined", "defined"), ("no solution", "0"),
    ],
    "sets": [
        (r"\{(1,2)\}", r"\{1,2\}"), (r"\{1,\{2\}\}", r"\{1,2\}"), (r"\{\{1\},\{2\}\}", r"\{1,2\}"),
        (r"\{\{1,2\}\}", r"\{1,2\}"), (r"\{1,2\}", r"\{1,2,3\}"), (r"\mathbb{R}\setminus\{0\}", r"\mathbb{R}"),
        (r"\mathbb{R}\setminus\{0\}", r"\mathbb{R}\setminus\{1\}"), ("[0,1]", "(0,1)"), ("[0,1)", "(0,1]"),
        (r"(-\infty,0)\cup(0,\infty)", r"(-\infty,\infty)"), (r"\{(1,2)\}", r"\{(2,1)\}"),
        (r"\{\emptyset\}", r"\emptyset"), (r"\{0\}", r"\emptyset"), (r"\{1,2,3\}\setminus\{2\}", r"\{1,2\}"),
        (r"\{\{1,2\},\{3\}\}", r"\{\{1\},\{2,3\}\}"), (r"\{\{1\},2\}", r"\{1,\{2\}\}"), (r"\mathbb{Z}", r"\mathbb{R}"),
        (r"\mathbb{N}", r"\mathbb{Z}"), ("all real numbers except 0", "all real numbers"),
        ("all real numbers except 2", "2"), (r"\mathbb{R}\setminus[0,1]", r"\mathbb{R}\setminus(0,1)"),
        (r"\{(1,2),(3,4)\}", r"\{1,2,3,4\}"), (r"\{1,2\}\cup\{3\}", r"\{1,2\}"),
        (r"\mathbb{R}\setminus\mathbb{Q}", r"\mathbb{Q}"), ("((1,2),3)", "(1,2,3)"), (r"\{1, 2\}", "(2, 1)"),
        (r"\mathbb{Q}\setminus\{0\}", r"\mathbb{R}\setminus\{0\}"), (r"\{1,2\}", "3"),
    ],
    "inequalities": [
        ("x > 2 or x < -2", "x > 2 and x < -2"), ("x < 5 or x > 0", "0 < x < 5"),
        ("x > 0 or x < 5", "x > 0 and x < 5"), ("x > 2", "x \\ge 2"), ("x^2 > 4", "x > 2"), ("|x| > 2", "|x| < 2"),
        ("x < 1 or x > 3", "1 < x < 3"), ("x^2 < 4", "x < 2"), ("x > 2", "x < 2"), ("(-2,2)", "x^2 > 4"),
        ("x > 2", "2"), ("x > 3 and x < 1", "x > 3 or x < 1"), ("|x| \\ge 2", "x^2 > 4"), ("x > 0", "y > 0"),
        ("(x-1)(x-3) > 0", "1 < x < 3"), ("x \\ne 0", "x > 0"), ("at least 3", "at most 3"),
        ("at least 3", "more than 3"), ("at least 3", "3"), ("x^3 > 8", "x^2 > 4"), ("x < -1 and x > 1", "|x| > 1"),
        ("fewer than 5", "5"),
    ],
    "equations": [
        ("y = |x|", "y = x"), (r"y = \lfloor x \rfloor", "y = x"), ("y = \\max(x,0)", "y = x"),
        (r"y = \sqrt{x^2}", "y = x"), ("|x| + y = 3", "x + y = 3"), (r"y = \lceil x \rceil", "y = x"),
        ("y = x", "y = -x"), ("x^2 + y^2 = 4", "x^2 + y^2 = 2"), ("y = 2x + 1", "y = 2x - 1"),
        (r"\lfloor x \rfloor = y", r"\lceil x \rceil = y"), ("y = x|x|", "y = x^2"), ("x = 2", "y = 2"),
        ("y^2 = x", "y = \\sqrt{x}"), ("y = \\min(x, 0)", "y = x"), ("x^2 = 4", "x = 2"), ("y = x^3", "y = x"),
        ("|y| = x", "y = x"), (r"y = \frac{x^2}{|x|}", "y = x"), ("y = \\sgn(x) x^2", "y = x^2"),
        ("2\\lfloor x/2 \\rfloor = y", "x = y"), ("|x| + |y| = 1", "x + y = 1"),
    ],
    "tuples with labels": [
        ("(x,y) = (1,2)", "(y,x) = (1,2)"), ("x = 1, y = 2", "x = 2, y = 1"), ("(1,2)", "(2,1)"),
        ("(a,b) = (1,2)", "a = 2, b = 1"), ("(x,y) = (1,2)", "(x,y) = (2,1)"),
        ("(x,y,z) = (1,2,3)", "(x,z,y) = (1,2,3)"), ("A(1,2)", "B(1,2)"), ("x = 1, y = 2", "(y,x) = (1,2)"),
        ("p = 3, q = 5", "p = 5, q = 3"),
    ],
    "families": [
        (r"\frac{\pi}{2} + k\pi", r"\frac{\pi}{2} + 2k\pi"), ("2k+1", "2k"), ("2k", "2n+1"), ("3k+1", "3k+2"),
        (r"k\pi, k\in\mathbb{Z}", r"\frac{k\pi}{2}, k\in\mathbb{Z}"), (r"\frac{\pi}{3}+2k\pi", r"\frac{\pi}{6}+2k\pi"),
        ("4k+1", "4k-1"), (r"\frac{\pi}{4}+k\pi", r"k\pi-\frac{\pi}{4}"),
        ("2k+1, k \\in \\mathbb{N}", "2k-1, k \\in \\mathbb{N}"), ("6k+1", "3k+1"), ("n^2", "(n+1)^2"), ("n + 1", "n"),
    ],
    "lists": [
        ("red, blue", "red, green"), ("red, blue", "red"), ("1, 2", "1, 3"), ("1, 2, 2", "1, 2"),
        ("Alice and Bob", "Alice"), ("±3", "3"), ("red, blue", "red, blue, green"), ("(1,2),(3,4)", "(1,2),(4,3)"),
        ("A, C", "A, D"), ("x = 1 or x = 2", "x = 1"), ("1, 2", "12"), ("cats and dogs", "cats or mice"),
    ],
    "formulas": [
        ("x+1", "x-1"), (r"\sin x", r"\cos x"), (r"\ln x", r"\log_2 x"), ("2 + 3i", "2 - 3i"), (r"\sqrt{x^2}", "x"),
        ("x^2", "2x"), ("e^x", "x^e"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}1&3\\2&4\end{pmatrix}"),
        (r"\arctan x", r"\frac{1}{\tan x}"), ("2x", "2y"), (r"\sum_{k=1}^{10} k", "45"),
        (r"\sum_{n=1}^{\infty} \frac{1}{2^n}", "2"), (r"\sum_{n=1}^{\infty} \frac{1}{n^2}", "2"), (r"|x|", "x"),
        (r"\frac{x}{|x|}", "1"), ("(x+1)^2", "x^2+1"), (r"\sum_{k=1}^{n} k", "n(n-1)/2"), ("x^2 + C", "x^3 + C"),
    ],
    "of every kind": [
        ("5 kilometers", "5 miles"), ("100 km/h", "100 mph"), ("2 kg", "2 g"), ("$12", "€12"),
        ("12 dollars", "12 cents"), ("a triangle", "a square"), ("x rises", "x falls"), ("B wins", "A wins"),
        ("5 m up", "5 m down"), ("4 aces", "4 kings"), ("6 pens", "6 pencils"), ("10 N", "10 Pa"), ("10 °C", "10 K"),
        ("3 rad", "3 degrees"), ("7 cm", "7 cm^2"), ("1 kWh", "1 kW"), ("y=|x-2|", "y=x-2"),
        (r"y = \lfloor 2x \rfloor", "y=2x"), (r"y=\max(x,1)", "y=x"), ("|x|=y", "x=y"),
        ("x>1 or x<-1", "x>1 and x<-1"), ("x>1 and x<3", "x>1 or x<3"), (r"\{(0,1)\}", r"\{0,1\}"),
        (r"\{0,\{1\}\}", r"\{0,1\}"), ("{1,{2}}", "{1,2}"), ("{(1,2)}", "{1,2}"), ("(x,y)=(3,4)", "(y,x)=(3,4)"),
        ("2,345", "2.345"), ("4,5", "4.5"), (r"\mathbb{R}\setminus\{0\}", r"\mathbb{R}\setminus\{2\}"),
        (r"k\pi", r"2k\pi"), (r"2k+1, k\in\mathbb{Z}", r"2k, k\in\mathbb{Z}"), ("DNE", "1"),
        ("does not exist", "exists"), ("1 in 4", "1 in 5"), ("1 in 4", "4/1"), ("red, blue", "red, yellow"),
        ("x^2>4", "x>2"), ("x^2>4", "(-2,2)"), ("|x|>2", "x>2"), ("5 hours", "5 minutes"), ("$5", "5 percent"),
        ("5 oz", "5 lb"), ("20 mph", "20 ft/s"), ("3 sisters", "3 brothers"), ("2 right", "2 left"),
        ("8 a.m.", "8 p.m."), ("A and B", "A or C"), ("an acute angle", "an obtuse angle"),
        ("f increases", "f decreases"), ("10 m/s east", "10 m/s west"), ("a minute", "a second"), ("(1,2]", "[1,2)"),
        ("3 hours", "3 km"), ("convex", "concave"), ("5 points", "5 lines"), ("4 blue", "4 red"),
        ("m increases", "m decreases"), ("|x+5|<7", "x<2"), ("|x-50|=y", "50-x=y"), ("|x-50|", "50-x"), ("5 €", "5 $"),
        ("5€", "5£"), ("100 yen", "100 yuan"),
    ],
}  # fmt: skip


def _cases(tables: dict[str, Pairs]) -> list[object]:
    return [
        pytest.param(*pair, id=f"{kind}: {pair[0]} | {pair[1]}") for kind, pairs in tables.items() for pair in pairs
    ]


@pytest.mark.parametrize(("gold", "answer"), _cases(EQUAL))
def test_two_ways_to_say_the_same_are_equal(gold: str, answer: str) -> None:
    assert equivalent(gold, answer) is True
    assert equivalent(answer, gold) is True


@pytest.mark.parametrize(("gold", "answer"), _cases(DIFFERENT))
def test_answers_that_mean_something_else_are_not_equal(gold: str, answer: str) -> None:
    assert equivalent(gold, answer) is not True
    assert equivalent(answer, gold) is not True


TEXTS = sorted({text for table in (EQUAL, DIFFERENT) for pairs in table.values() for pair in pairs for text in pair})


@pytest.mark.parametrize("text", TEXTS)
def test_an_answer_means_what_it_means(text: str) -> None:
    assert equivalent(text, f" {text} ") is True


NUMBERS = st.sampled_from(["5", "12", "0.5", "-3", "36", "90", "1000"])
UNITS = st.sampled_from(
    [
        "",
        " m",
        " cm",
        " km/h",
        " m/s",
        " kg",
        " degrees",
        "%",
        " dollars",
        " cents",
        " apples",
        " pears",
        " m^2",
        " hours",
    ]
)


@given(NUMBERS, UNITS, NUMBERS, UNITS)
def test_the_verdict_on_amounts_does_not_depend_on_which_is_the_gold(one: str, unit: str, two: str, other: str) -> None:
    assert equivalent(one + unit, two + other) == equivalent(two + other, one + unit)


@given(NUMBERS, st.sampled_from(sorted(_TABLE)), st.sampled_from(sorted(_TABLE)))
def test_units_of_another_kind_are_another_answer(number: str, unit: str, other: str) -> None:
    kinds = [{size.dimensions for size in read_unit(name).sizes} for name in (unit, other)]
    assume(not kinds[0] & kinds[1] and GENERIC not in (unit, other))
    left, right = (rf"{number}\ \text{{{name.replace('_', ' ')}}}" for name in (unit, other))
    assert equivalent(left, right) is not True


@given(st.sampled_from(sorted(_TABLE)), st.integers(1, 500))
def test_a_unit_is_itself_and_two_of_it_are_not(unit: str, count: int) -> None:
    name = unit.replace("_", " ")
    assert equivalent(rf"{count}\ \text{{{name}}}", rf"{count}.0\ \text{{{name}}}") is True
    assert equivalent(rf"{count}\ \text{{{name}}}", rf"{2 * count}\ \text{{{name}}}") is not True
