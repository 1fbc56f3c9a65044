"""Exceptions: every error that a user can meet, in one tree.

Each says what is wrong, where, and how to fix it; each also inherits the builtin that people would catch.
That no counterfactual exists is an answer, not an error.
"""

from __future__ import annotations

from typing import Any

from .printing import lines


class IfonlyError(Exception):
    """The root of the tree: catch this to catch everything that ifonly raises on purpose.

    A message quotes names and values that come from outside, so it is made printable and bounded here, for all.
    """

    where: tuple[str | int, ...] = ()
    """The part of a query that is wrong, such as ("constraints", 2) or ("target",); empty where none is."""

    def __init__(self, message: str = "", *rest: Any) -> None:
        super().__init__(lines(message), *rest)


class located:  # noqa: N801  used as a function, as those of contextlib are
    """A context manager: errors that are raised inside are about this part of a query."""

    __slots__ = ("where",)

    def __init__(self, *where: str | int) -> None:
        self.where = where

    def __enter__(self) -> None:
        """Nothing is set up."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, IfonlyError):
            error.where = (*self.where, *error.where)


class SchemaError(IfonlyError, ValueError):
    """The description of what a row is contradicts itself."""


class RowError(IfonlyError, ValueError):
    """A row does not fit its schema. Carries the feature, the row number (or None) and the value."""

    def __init__(self, message: str, *, feature: str | None = None, row: int | None = None, value: Any = None) -> None:
        super().__init__(message)
        self.feature = feature
        self.row = row
        self.value = value


class ModelError(IfonlyError, ValueError):
    """A model cannot be read, or does not do what its imported network does."""


class UnsupportedModel(ModelError, NotImplementedError):
    """An operation of the model has no exact piecewise-linear form here. Carries its name."""

    def __init__(self, message: str, *, operation: str) -> None:
        super().__init__(message)
        self.operation = operation

    def __reduce__(self) -> Any:  # so that it survives the way back from a worker process
        return _remade, (type(self), self.args, self.__dict__)


class QuestionError(IfonlyError, ValueError):
    """The question (distance, target, constraints, limits) is not well posed."""


class RuleError(QuestionError):
    """A constraint in words cannot be read. Three lines: what is wrong, the text, and marks under the place."""


class UnsupportedQuestion(QuestionError, NotImplementedError):
    """The question is well posed, but the chosen method does not support it."""


class FileError(IfonlyError, ValueError):
    """A file is missing, damaged, too large, or not of the kind that was asked for."""


class ChangedFile(FileError):
    """A file is not what it was when its checksum was taken. Carries what messages call it."""

    def __init__(self, file: str, remedy: str = "begin anew when nobody writes to it") -> None:
        super().__init__(f"{file} has changed while it was read; {remedy}.")
        self.file = file

    def __reduce__(self) -> Any:
        return _remade, (type(self), self.args, self.__dict__)


class MissingExtra(IfonlyError, ImportError):
    """A package that only some features need is not installed. Names the extra that brings it."""

    def __init__(self, package: str, *, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the package '{package}', which is not installed; "
            f"install it with: pip install 'ifonly[{extra}]'"
        )
        self.package = package
        self.extra = extra

    def __reduce__(self) -> Any:
        return _remade, (type(self), self.args, self.__dict__)


class Contradiction(IfonlyError, RuntimeError):
    """Two things that must agree do not: a bug in ifonly, or a model that is not what it was. Names both numbers."""


def _remade(kind: type[IfonlyError], args: tuple[Any, ...], fields: dict[str, Any]) -> IfonlyError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error
