"""Tables and outputs at URLs that fsspec knows (s3://, gs://, az://, memory://, ...): copied to this machine and back.

A table is copied into a temporary folder before it is read. A run's output is made in a folder of this machine that
belongs to its URL, with everything that makes it safe to interrupt, and uploaded when it is complete, the manifest
last. A `file://` URL is a path.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ifonly.errors import FileError, MissingExtra, QuestionError
from ifonly.population.output import FINISHED, manifest_of
from ifonly.population.output_paths import OutputPaths, place_of

URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+(::[a-zA-Z][a-zA-Z0-9+.-]+)*://")
STAGING = "IFONLY_STAGING"
"""The environment variable that names the folder in which runs to URLs are made."""
MOST_FILES = 100_000


def is_url(given: Any) -> bool:
    return isinstance(given, str) and URL.match(given) is not None


def _file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtra("fsspec", extra="fsspec", needed_for=f"The URL '{url}'") from None
    try:
        system, path = url_to_fs(url)
        return system, path
    except (ImportError, ValueError) as error:  # s3:// needs s3fs; a scheme that nobody knows
        raise FileError(f"Cannot open '{url}': {error}.") from None


@contextmanager
def _transfer(what: str, url: str, hint: str = "") -> Iterator[None]:
    """Whatever a file system raises as a FileError."""
    try:
        yield
    except FileError:
        raise
    except Exception as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise FileError(f"Cannot {what} '{url}': {why}{hint}.") from None


# ---------------------------------------------------------------------- tables


class StagedTable:
    """The files of a URL in a temporary folder, which is removed with this object."""

    def __init__(self, url: str) -> None:
        system, path = _file_system(url)
        self.path: Path
        if "file" in _protocols(system):
            self.path = Path(path)
            return
        folder = Path(tempfile.mkdtemp(prefix="ifonly-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        with _transfer("read the table", url):
            if any(sign in path for sign in "*?["):
                found = [one for one in system.glob(path) if system.isfile(one)]
                root, self.path = path[: _first_wildcard(path)].rpartition("/")[0], folder
            elif system.isdir(path):
                found, root, self.path = system.find(path), path, folder
            else:
                found, root, self.path = [path], path.rpartition("/")[0], folder / PurePosixPath(path).name
            if not found or len(found) > MOST_FILES:
                many = f"more than {MOST_FILES:,}" if found else "no"
                raise FileError(f"'{url}' names {many} files.")
            for one in found:
                local = _inside(folder, one.removeprefix(root).lstrip("/"), url)
                local.parent.mkdir(parents=True, exist_ok=True)
                system.get_file(one, str(local))


def _first_wildcard(path: str) -> int:
    return min(at for sign in "*?[" if (at := path.find(sign)) >= 0)


def _protocols(system: Any) -> tuple[str, ...]:
    named = system.protocol
    return (named,) if isinstance(named, str) else tuple(named)


def _inside(folder: Path, name: str, url: str) -> Path:
    """The path of a file below a folder; names that lead out of it are refused."""
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or PurePosixPath(name).is_absolute():
        raise FileError(f"'{url}' holds a file with a name that cannot be used here: {name!r}.")
    return folder.joinpath(*parts)


# ---------------------------------------------------------------------- outputs


@dataclass(frozen=True, slots=True)
class RemoteOutput:
    """An output at a URL, and the place on this machine where it is made."""

    url: str
    system: Any
    target: str
    folder: Path
    """Of this URL's run on this machine."""

    @property
    def local(self) -> str:
        """The path of the output while it is made; a folder of parts ends in a slash."""
        return str(self.folder / PurePosixPath(self.target.rstrip("/")).name) + "/" * self.url.endswith("/")

    @contextmanager
    def making(self) -> Iterator[None]:
        """Bring what is at the URL, unless a run is under way here; inside, a run is made of it at `local`; then upload
        it. What was only brought is removed again; a run that has begun stays."""
        place = self._place()
        begun = place.manifest.exists()
        with _transfer("read what is at", self.url):
            mark = self._mark()
            if not begun:
                self._fetch(place)
        brought = self._manifest(place)
        try:
            yield
        except BaseException as error:
            if not begun and self._manifest(place) == brought:
                self.clear()
            if type(error) in (FileError, QuestionError):
                raise type(error)(str(error).replace(self.local.rstrip("/"), self.url.rstrip("/"))) from None
            raise
        self._upload(place, mark)
        self.clear()

    def _manifest(self, place: OutputPaths) -> bytes:
        return place.manifest.read_bytes() if place.manifest.exists() else b""

    def _fetch(self, place: OutputPaths) -> None:
        for local, remote in self._files(place).items():
            if self.system.isdir(remote):
                self.system.get(remote.rstrip("/") + "/", f"{local}/", recursive=True)
            elif self.system.exists(remote) and not local.exists():
                self.system.get_file(remote, str(local))

    def _upload(self, place: OutputPaths, mark: str) -> None:
        """Upload a finished run, the manifest last; `mark`: what was at the URL when it began."""
        found = manifest_of(place)
        assert found is not None and found["state"] == FINISHED
        hint = "; all rows are answered and kept on this machine: go on with --resume"
        manifest = self._files(place)[place.manifest]
        with _transfer("write", self.url, hint):
            if self.system.exists(manifest) and self.system.cat_file(manifest) == self._manifest(place):
                return  # it is there already
            if self._mark() != mark:
                raise FileError(f"'{self.url}' was changed by somebody else since the run began{hint}.")
            names = [] if place.is_file else [part["name"] for part in found["parts"]]
            if place.is_file:
                self._put(place.path, self.target)
            else:
                with contextlib.suppress(NotImplementedError):
                    self.system.makedirs(self.target, exist_ok=True)
                for name in names:
                    self._put(place.folder / name, f"{self.target.rstrip('/')}/{name}")
                self._remove_others({*names, place.manifest.name})
            self._put(place.manifest, manifest)

    def clear(self) -> None:
        """Remove what is on this machine."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _place(self) -> OutputPaths:
        return place_of(self.local)

    def _files(self, place: OutputPaths) -> dict[Path, str]:
        """The files of a finished output: here, and at the URL."""
        if not place.is_file:
            target = self.target.rstrip("/")
            return {place.path: target, place.manifest: f"{target}/{place.manifest.name}"}
        return {place.path: self.target, place.manifest: f"{self.target}.manifest.json"}

    def _mark(self) -> str:
        """What is at the URL: changes whenever the manifest or the file does."""
        remotes = self._files(self._place()).values()
        there = [one for one in remotes if self.system.exists(one) and not self.system.isdir(one)]
        return " ".join(str(self.system.checksum(one)) for one in there)

    def _put(self, local: Path, remote: str) -> None:
        """Object stores show a file when it is complete; elsewhere it is moved into place."""
        beside = f"{remote}.writing"
        parent = remote.rpartition("/")[0]
        if parent:
            with contextlib.suppress(Exception):  # buckets need no folders
                self.system.makedirs(parent, exist_ok=True)
        self.system.put_file(str(local), beside)
        self.system.mv(beside, remote)

    def _remove_others(self, names: set[str]) -> None:
        """Parts of an older run that this one replaces."""
        below = f"{self.target.strip('/')}/"
        for one in self.system.find(self.target):
            name = str(one).partition(below)[2]
            if PurePosixPath(name).name.startswith("part-") and name not in names:
                self.system.rm_file(one)


def remote_output(given: Any) -> RemoteOutput | str | None:
    """The output at a URL; a path where the URL is one of this machine; None where it is no URL."""
    if not is_url(given):
        return None
    system, target = _file_system(given)
    if "file" in _protocols(system):
        return target + "/" * (given.endswith("/") and not target.endswith("/"))
    named = os.environ.get(STAGING) or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "ifonly")
    folder = Path(named, "runs", hashlib.sha256(given.encode("utf-8")).hexdigest()[:24])
    with _transfer("write", str(folder)):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return RemoteOutput(given, system, target, folder)


def local_place(given: Any) -> OutputPaths:
    """Where an output is made on this machine, checked as far as that is possible before the work."""
    remote = remote_output(given)
    return place_of(remote.local if isinstance(remote, RemoteOutput) else remote or given)
