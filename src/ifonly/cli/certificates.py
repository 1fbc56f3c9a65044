"""`--certificate FILE` of `ifonly diverse`, `why` and `recourse`: the certificates of what a command found."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli.console import note
from ifonly.cli.outputs import check_place

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ifonly.certificate.format import Certificate
    from ifonly.explainer import Explainer


def certificate_option(words: str) -> Callable[[Any], Any]:
    """The option, with what it writes."""
    return click.option("--certificate", metavar="FILE", help=f"Write {words}, for `ifonly check`.")


def certificate_place(name: str | None, *, force: bool, one: bool) -> Path | None:
    """The path of --certificate, if something can be written there: of `one` certificate under any name, of several
    under one that ends with .certs.
    """
    from ifonly.certificate.collection import ENDING

    if name is None:
        return None
    kinds = () if one else (ENDING,)
    return check_place(name, force=force, kinds=kinds, what="A collection of several certificates")


def certificate_output(path: Path | None, explainer: Explainer, asked: str, *, force: bool) -> CertificateOutput | None:
    """The output at the path, if there is one; an error where a certificate cannot state the model."""
    return None if path is None else CertificateOutput(path, explainer, asked, force=force)


class CertificateOutput:
    """Writes certificates of one model: one to a file, or, to one that ends with .certs, any number, row by row.

    `asked` names the question in a collection.
    """

    def __init__(self, path: Path, explainer: Explainer, asked: str, *, force: bool) -> None:
        from ifonly.certificate.collection import ENDING, CollectionWriter
        from ifonly.cli.certify_many import shared_parts

        self.path, self.force = path, force
        self.counts = {"written": 0, "without": 0}
        """Certificates, and rows that have none."""
        self.collection: CollectionWriter | None = None
        shared = shared_parts(explainer)  # refused before the work, where the model cannot be stated
        if path.suffix == ENDING:
            if force:
                path.unlink(missing_ok=True)
            self.collection = CollectionWriter(path, shared, hashlib.sha256(asked.encode()).hexdigest())

    def add(self, row: int, make: Callable[[], Certificate | Sequence[Certificate]]) -> None:
        """Write the certificate, or the certificates, of a row; or say why it has none."""
        from ifonly.certificate.format import Certificate
        from ifonly.errors import IfonlyError
        from ifonly.schema import write_whole

        try:
            made = make()
            for one in [made] if isinstance(made, Certificate) else made:
                if self.collection is not None:
                    self.collection.add(row, one)
                else:
                    write_whole(self.path, one.content, overwrite=self.force)
                self.counts["written"] += 1
        except IfonlyError as error:
            self.counts["without"] += 1
            note(f"row {row} has no certificate: {error}")
            if self.collection is not None:
                self.collection.refuse(row, str(error))

    @property
    def complete(self) -> bool:
        """Has every row a certificate?"""
        return not self.counts["without"]

    def close(self) -> None:
        """Close the file, and say how it is checked."""
        if self.collection is not None:
            self.collection.__exit__()
        if self.collection is not None or self.complete:
            note(f"Written to {self.path}; to check it: ifonly check {self.path}")
