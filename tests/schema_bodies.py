"""Data of a JSON Schema, by hypothesis: every keyword that the desk's description uses, and no other."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

Shape = dict[str, Any]
KNOWN = {"$ref", "enum", "const", "anyOf", "not", "type", "items", "prefixItems", "minItems", "maxItems", "properties", "required",
         "additionalProperties", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
         "examples", "title", "description"}  # fmt: skip


def drawn(shape: Any, shapes: dict[str, Shape]) -> st.SearchStrategy[Any]:
    """Data of a shape. Texts with a pattern are drawn from their examples."""
    assert set(shape) <= KNOWN, set(shape) - KNOWN
    if "not" in shape:
        wrong = shape["not"]["const"]
        rest = {key: value for key, value in shape.items() if key != "not"}
        return drawn(rest, shapes).filter(lambda one: one != wrong)
    if "$ref" in shape:
        return st.deferred(lambda: drawn(shapes[shape["$ref"].rsplit("/", 1)[1]], shapes))
    if "const" in shape:
        return st.just(shape["const"])
    if "enum" in shape:
        return st.sampled_from(shape["enum"])
    if "anyOf" in shape:
        return st.one_of([drawn(one, shapes) for one in shape["anyOf"]])
    kinds = shape["type"]
    return st.one_of([KINDS[kind](shape, shapes) for kind in ([kinds] if isinstance(kinds, str) else kinds)])


def _numbers(shape: Shape, shapes: dict[str, Shape]) -> st.SearchStrategy[Any]:
    if "multipleOf" in shape:
        step, least = Fraction(str(shape["multipleOf"])), shape.get("minimum", 0)
        most = shape.get("maximum", least + 1000 * step)
        first, last = -(-Fraction(least) // step), Fraction(most) // step
        return st.integers(int(max(first, 1 if "exclusiveMinimum" in shape else first)), int(last)).map(
            lambda k: float(k * step)
        )
    least, most = (
        shape.get("minimum", shape.get("exclusiveMinimum")),
        shape.get("maximum", shape.get("exclusiveMaximum")),
    )
    strict = {"exclude_min": "exclusiveMinimum" in shape, "exclude_max": "exclusiveMaximum" in shape}
    floats = st.floats(least, most, allow_nan=False, allow_infinity=False, **strict)
    low = -100 if least is None else least
    near = st.floats(low, min(low + 200, low + 200 if most is None else most), **strict)  # people do not ask for 1e300
    return near | floats


def _integers(shape: Shape, shapes: dict[str, Shape]) -> st.SearchStrategy[Any]:
    if "multipleOf" in shape:
        return _numbers(shape, shapes).map(int)
    whole = st.integers(*(None if shape.get(end) is None else int(shape[end]) for end in ("minimum", "maximum")))
    return whole | whole.filter(lambda one: abs(one) < 2**53).map(float)  # to JSON Schema, 2.0 is an integer


def _texts(shape: Shape, shapes: dict[str, Shape]) -> st.SearchStrategy[Any]:
    assert "pattern" not in shape or "examples" in shape
    return (
        st.sampled_from(shape["examples"])
        if "examples" in shape
        else st.text(max_size=min(20, shape.get("maxLength", 20)))
    )


def _arrays(shape: Shape, shapes: dict[str, Shape]) -> st.SearchStrategy[Any]:
    if "prefixItems" in shape:
        return st.tuples(*(drawn(one, shapes) for one in shape["prefixItems"])).map(list)
    least = shape.get("minItems", 0)
    return st.lists(
        drawn(shape["items"], shapes),
        min_size=least,
        max_size=min(shape.get("maxItems", 4), least + 3),
        unique=shape.get("uniqueItems", False),
    )


def _objects(shape: Shape, shapes: dict[str, Shape]) -> st.SearchStrategy[Any]:
    inside = {name: drawn(one, shapes) for name, one in shape.get("properties", {}).items()}
    needed = {name: inside.pop(name) for name in shape.get("required", ())}
    if len(inside) <= 8:
        return st.fixed_dictionaries(needed, optional=inside)
    some = st.lists(st.sampled_from(sorted(inside)), max_size=4, unique=True)  # of many features, a few
    return some.flatmap(lambda names: st.fixed_dictionaries({**needed, **{name: inside[name] for name in names}}))


KINDS: dict[str, Callable[[Shape, dict[str, Shape]], st.SearchStrategy[Any]]] = {
    "string": _texts,
    "number": _numbers,
    "integer": _integers,
    "boolean": lambda shape, shapes: st.booleans(),
    "null": lambda shape, shapes: st.none(),
    "array": _arrays,
    "object": _objects,
}
