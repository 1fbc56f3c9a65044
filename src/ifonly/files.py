"""Files: paths from what users give, and atomic writing."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .errors import FileError
from .printing import shown


def path_of(value: Any) -> Path:
    """The path that a text or a path names."""
    try:
        path = Path(value)
        if value == "" or b"\0" in os.fsencode(path):
            raise ValueError
    except (
        TypeError,
        ValueError,
    ):  # no text, or one that no file can be called by (an empty one, a lone surrogate, a zero)
        raise FileError(f"A file is named by a text or a path; {shown(value)} cannot name one.") from None
    return path


@contextmanager
def file_errors(action: str) -> Iterator[None]:
    """Errors of the operating system inside it are raised as a FileError, which says what could not be done."""
    try:
        yield
    except OSError as error:
        raise FileError(f"Cannot {action}: {error.strerror or error}.") from None


def check_writable(path: Path, *, folder: bool = False) -> None:
    """Can a file (a folder) of this name be written? Asked before the work, not after it."""
    try:
        is_folder, there, parent = path.is_dir(), path.exists(), path.resolve().parent
        inside = parent.is_dir()
    except (OSError, RuntimeError) as error:  # a name that is too long, a link that goes in a circle
        raise FileError(f"Cannot write '{path}': {getattr(error, 'strerror', None) or error}.") from None
    if there and is_folder != folder:
        raise FileError(f"Cannot write '{path}': it is a {'folder' if is_folder else 'file'}.")
    if not inside:
        raise FileError(f"Cannot write '{path}': its folder is not there.")
    if not os.access(parent, os.W_OK):
        raise FileError(f"Cannot write '{path}': its folder is read-only.")


@contextmanager
def replacing(path: str | Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Atomic write: a temporary path beside this one, which replaces it when complete and is deleted on an error.

    A symbolic link keeps its target.
    """
    target = path_of(path).resolve()
    if not target.name:
        raise FileError(f"Cannot write '{path}': it is a folder.")
    part, ours = target.with_name(f".{target.stem}.{uuid.uuid4().hex[:8]}{target.suffix}"), False
    try:
        part.open("xb").close()  # never write through a link that exists there
        ours = True
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        move(part, target, overwrite=overwrite)
    except FileExistsError:
        name = path if ours else part
        raise FileError(f"'{name}' is there already; to write over it, add --force.") from None
    except OSError as error:
        raise FileError(f"Cannot write '{path}': {error.strerror or error}.") from None
    finally:
        if ours:
            with suppress(OSError):  # a folder that is gone
                part.unlink(missing_ok=True)


def move(part: Path, target: Path, *, overwrite: bool) -> None:
    """Give a complete file its final name; FileExistsError where another has it and must not lose it."""
    if overwrite:
        part.replace(target)
        return
    try:
        os.link(part, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(target):
            raise FileExistsError(target) from None
        part.replace(target)
    else:
        part.unlink()


def write_whole(path: str | Path, content: bytes, *, overwrite: bool = True) -> None:
    """Write a file, all of it or nothing."""
    with replacing(path, overwrite=overwrite) as part:
        part.write_bytes(content)
