"""Static files of the page, read once at start: only their paths are served."""

from __future__ import annotations

from importlib.resources import files

CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}


def page_files() -> dict[str, tuple[bytes, str]]:
    """Content and content type by path. The page itself is at `/`, its files are under `/page/`."""
    found: dict[str, tuple[bytes, str]] = {}
    folder = files("ifonly.service") / "page"
    if not folder.is_dir():
        return found
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        content_type = CONTENT_TYPES.get("." + file.name.rpartition(".")[2])
        if content_type is not None and file.is_file():
            found[f"/page/{file.name}"] = (file.read_bytes(), content_type)
    if "/page/index.html" in found:
        found["/"] = found.pop("/page/index.html")  # its links are relative to that
    return found
