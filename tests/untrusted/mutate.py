"""Damage: bytes, protobuf messages and JSON values changed at random, by a seed."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

WHOLE = (0, 1, -1, 2, 7, 127, 255, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63))
REAL = (0.0, -0.0, 1.0, -1.0, 1e-320, 1e38, 1e308, -1e308, math.inf, -math.inf, math.nan)
TEXT = (
    "",
    "x",
    "a b",
    "\x1b[31m",
    "\x00",
    "\u202e",
    "\u2028",
    "\ud800",
    "../x",
    "/etc/hostname",
    "e\u0301",
    "z" * 3000,
)


# ---------------------------------------------------------------------- bytes


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The bytes with one to four of: a bit flipped, bytes replaced, cut out, put in, doubled, the end cut off."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not data:
            break
        at, length = rng.randrange(len(data)), rng.choice((1, 1, 2, 4, 8, 30))
        match rng.randrange(7):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at : at + length] = rng.randbytes(length)
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = rng.randbytes(length)
            case 4:
                data[at:at] = data[at : at + length]
            case 5:
                data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 6:
                del data[at:]
    return bytes(data)


# ---------------------------------------------------------------------- protobuf


def distorted(message: Any, rng: random.Random) -> Any:
    """A copy of the message with one to three fields cleared, changed, doubled, swapped or taken from elsewhere."""
    changed = copy.deepcopy(message)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = [(part, field) for part in _messages(changed) for field in part.DESCRIPTOR.fields]
        set_ones = [(part, field) for part, field in places if _is_set(part, field)]
        _distort(*rng.choice(set_ones if set_ones and rng.random() < 0.8 else places), changed, rng)
    return changed


def _messages(message: Any) -> list[Any]:
    found, waiting = [], [message]
    while waiting:
        part = waiting.pop()
        found.append(part)
        for field, value in part.ListFields():
            if field.type == field.TYPE_MESSAGE:
                waiting.extend(value if _repeated(part, field) else [value])
    return found


def _repeated(message: Any, field: Any) -> bool:
    return hasattr(getattr(message, field.name), "extend")


def _is_set(message: Any, field: Any) -> bool:
    return any(field.name == known.name for known, _ in message.ListFields())


def _distort(message: Any, field: Any, whole: Any, rng: random.Random) -> None:
    if not _repeated(message, field):
        if rng.random() < 0.25:
            message.ClearField(field.name)
        elif field.type == field.TYPE_MESSAGE:
            if alike := _alike(whole, field):  # a copy first: protobuf clears before it copies
                getattr(message, field.name).CopyFrom(copy.deepcopy(rng.choice(alike)))
        else:
            _put(lambda value: setattr(message, field.name, value), field, whole, rng)
        return
    items = getattr(message, field.name)
    match rng.randrange(5):
        case 0 if len(items):
            del items[rng.randrange(len(items))]
        case 1 if len(items):
            items.extend([copy.deepcopy(items[rng.randrange(len(items))])])
        case 2 if len(items) > 1:
            kept = [copy.deepcopy(item) for item in items]
            rng.shuffle(kept)
            del items[:]
            items.extend(kept)
        case 3 if field.type != field.TYPE_MESSAGE and len(items):
            at = rng.randrange(len(items))
            _put(lambda value: items.__setitem__(at, value), field, whole, rng)
        case 4:
            del items[:]
        case _:
            if field.type == field.TYPE_MESSAGE:
                items.extend([copy.deepcopy(one) for one in _alike(whole, field)[:1]])
            else:
                _put(items.append, field, whole, rng)


def _alike(whole: Any, field: Any) -> list[Any]:
    return [part for part in _messages(whole) if part.DESCRIPTOR.full_name == field.message_type.full_name]


def _put(put: Any, field: Any, whole: Any, rng: random.Random) -> None:
    """A value of the field's type: one of the extremes, or one that stands elsewhere in the message."""
    kinds = {field.CPPTYPE_STRING: TEXT, field.CPPTYPE_FLOAT: REAL, field.CPPTYPE_DOUBLE: REAL}
    values: list[Any] = list(kinds.get(field.cpp_type, WHOLE))
    if rng.random() < 0.5:
        for part in _messages(whole):
            for other, value in part.ListFields():
                if other.cpp_type == field.cpp_type:
                    values.extend([value] if not _repeated(part, other) else list(value)[:4])
    value = rng.choice(values)
    if field.type == field.TYPE_BYTES and isinstance(value, str):
        value = value.encode("utf-8", "replace")
    try:
        put(value)
    except (ValueError, TypeError, UnicodeError):  # protobuf itself refuses it
        return


# ---------------------------------------------------------------------- JSON


JSON = (None, True, False, 0, 1, -1, 2.5, -0.0, 1e308, 10**25, 10**400, 2**53, "", "a", "\ud800", "\x1b[2J", "\u202e",
        "NaN", "z" * 3000, [], {}, [[]], [1, [2]], {"a": 1}, math.nan, math.inf)  # fmt: skip


def twisted(value: Any, rng: random.Random) -> Any:
    """A copy of a JSON value with one to three places dropped, doubled, renamed, or given something else."""
    root = [copy.deepcopy(value)]
    for _ in range(rng.choice((1, 1, 2, 3))):
        places: list[tuple[Any, Any]] = [(root, 0)]
        for holder, key in places:
            inner = holder[key]
            if isinstance(inner, dict):
                places.extend((inner, name) for name in inner)
            elif isinstance(inner, list):
                places.extend((inner, i) for i in range(len(inner)))
        holder, key = rng.choice(places)
        match rng.randrange(6):
            case 0 if holder is not root:
                del holder[key]
            case 1 if isinstance(holder, list) and holder is not root:
                holder.insert(key, copy.deepcopy(holder[key]))
            case 2 if isinstance(holder, dict):
                holder[rng.choice(TEXT)] = holder.pop(key)
            case 3:
                other, place = rng.choice(places)
                holder[key] = copy.deepcopy(other[place])
            case _:
                holder[key] = copy.deepcopy(rng.choice(JSON))
    return root[0]
