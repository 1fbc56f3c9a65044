"""Numbers of a rule that may be meant by either decimal mark: 10.000 as ten or as ten thousand, by what is compared.

whole numbers               nobody gives ten three decimals: 10.000 may be ten thousand
what reaches ten thousand   10.000 may be either
what does not               10.000 is ten; and 10,000, which is beyond all of it, may be ten
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from ifonly.problem.rules.syntax import Constant
from ifonly.schema import Integer, Numeric
from ifonly.schema.features import Feature


def unclear(beside: Mapping[Feature, Fraction], one: Constant) -> bool:
    """May the number be meant by the other decimal mark, beside a sum of these features, each so many times?"""
    if one.other is None or not beside:
        return False
    whole = all(isinstance(feature, Integer) or not isinstance(feature, Numeric) for feature in beside)
    reach = sum(float(abs(times)) * _largest(feature) for feature, times in beside.items())
    if one.other > one.value:
        return float(one.other) <= reach or (whole and one.value.denominator == 1)
    return not whole and float(one.value) > reach


def _largest(feature: Feature) -> float:
    return max(abs(feature.lower), abs(feature.upper)) if isinstance(feature, Numeric) else 1.0
