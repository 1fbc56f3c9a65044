"""Numbers of a rule that may be meant by either decimal mark: 10.000 as ten or as ten thousand, by what is compared.

a whole number              nobody gives it three decimals: 10.000 may be ten thousand
a real number up to 50000   reaches ten thousand, so 10.000 may be either
a real number up to 100     does not: 10.000 is ten; and 10,000, which is beyond all of it, may be ten
"""

from __future__ import annotations

from ifonly.problem.rules.syntax import Constant
from ifonly.schema import Integer, Numeric
from ifonly.schema.features import Feature


def unclear(feature: Feature, one: Constant) -> bool:
    """May the number be meant by the other decimal mark, where the feature is compared with it?"""
    if one.other is None:
        return False
    point, whole = one.other > one.value, not isinstance(feature, Numeric) or isinstance(feature, Integer)
    if whole or not isinstance(feature, Numeric):
        return point
    reach = max(abs(feature.lower), abs(feature.upper))
    return float(one.other) <= reach if point else float(one.value) > reach
