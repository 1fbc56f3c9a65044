"""`ifonly doctor`: what is installed, what is missing and how to get it. It never raises and never takes a licence."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import platform
from pathlib import Path
from typing import Any

import click

from ifonly.cli.console import json_option, show, show_json

NEEDED = ("numpy", "numba", "highspy", "click", "rich")

EXTRAS = {
    "pandas": ("pandas",), "polars": ("polars",), "parquet": ("pandas", "pyarrow"), "fsspec": ("fsspec",),
    "yaml": ("PyYAML",), "plot": ("matplotlib",), "serve": ("uvicorn",), "excel": ("pandas", "openpyxl"),
    "sklearn": ("scikit-learn", "pandas"), "torch": ("torch",), "onnx": ("onnx",), "keras": ("keras",),
    "gurobi": ("gurobipy", "scipy"), "xgboost": ("xgboost",), "lightgbm": ("lightgbm",), "catboost": ("catboost",),
    "interpret": ("interpret-core",), "optbinning": ("optbinning",), "scip": ("pyscipopt",), "smt": ("z3-solver",),
    "notice": ("Jinja2",), "docx": ("Jinja2", "python-docx"), "ray": ("ray",), "dask": ("distributed",),
    "dowhy": ("dowhy",),
}  # fmt: skip

BACKENDS = {
    "highspy": "pip install highspy",
    "gurobipy": "pip install 'ifonly[gurobi]'",
    "pyscipopt": "pip install 'ifonly[scip]'",
    "z3": "pip install 'ifonly[smt]'",
}


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Say what is installed, what is missing and how to get it."""
    findings = examine()
    if as_json:
        show_json(findings)
    else:
        _show(findings)
    return 0


def examine() -> dict[str, Any]:
    """Everything found out, as plain data."""
    from ifonly import __version__
    from ifonly.worker_processes import cores

    return {
        "ifonly": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "usable_cores": cores(),
        "packages": {name: _version(name) for name in NEEDED},
        "extras": {
            extra: {"packages": {name: _version(name) for name in names}, "install": f"pip install 'ifonly[{extra}]'"}
            for extra, names in EXTRAS.items()
        },
        "backends": {name: {**_imports(name), "install": how} for name, how in BACKENDS.items()},
        "kernel_cache": _kernel_cache(),
    }


def _version(package: str) -> str | None:
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _imports(module: str) -> dict[str, Any]:
    """Does the module import? (Importing takes no licence; only solving does.)"""
    try:
        if importlib.util.find_spec(module) is None:
            return {"imports": False, "why": "not installed"}
        importlib.import_module(module)
    except Exception as error:  # a broken installation is a finding, not a failure
        return {"imports": False, "why": f"{type(error).__name__}: {error}"}
    return {"imports": True, "why": ""}


def _kernel_cache() -> dict[str, Any]:
    """Where numba keeps kernels: NUMBA_CACHE_DIR, next to the code, or (code read-only) in the user's cache."""
    package = Path(__file__).resolve().parents[1]
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        place = Path(chosen)
    elif os.access(package, os.W_OK):
        place = package
    else:
        place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba"
    files = 0
    with contextlib.suppress(OSError):
        files = sum(1 for _ in place.rglob("*.nbc"))
    existing = next((p for p in (place, *place.parents) if p.exists()), place)
    return {"where": str(place), "writable": os.access(existing, os.W_OK), "files": files}


def _show(findings: dict[str, Any]) -> None:
    from ifonly.report import Facts, Heading, TextTable

    cache = findings["kernel_cache"]
    packages = [(name, "ok" if v else "missing", v or "pip install ifonly") for name, v in findings["packages"].items()]
    extras = [_extra_line(name, extra) for name, extra in findings["extras"].items()]
    backends = [
        (name, "ok", "") if found["imports"] else (name, "missing", f"{found['why']}; {found['install']}")
        for name, found in findings["backends"].items()
    ]
    show((
        Facts([
            ("ifonly", findings["ifonly"]),
            ("python", findings["python"]),
            ("platform", findings["platform"]),
            ("cores", f"{findings['usable_cores']} usable of {findings['cores']}"),
            ("kernel cache", f"{cache['where']} ({cache['files']} compiled kernels, "
                             f"{'writable' if cache['writable'] else 'NOT writable'})"),
        ]),
        Heading("Packages that ifonly needs"),
        TextTable(header=("package", "status", "version"), rows=packages),
        Heading("Extras"),
        TextTable(header=("extra", "status", "packages"), rows=extras),
        Heading("Solver backends (of the MIP and SMT methods)"),
        TextTable(header=("module", "status", "how to get it"), rows=backends),
    ))  # fmt: skip


def _extra_line(name: str, extra: dict[str, Any]) -> tuple[str, str, str]:
    packages = extra["packages"]
    if all(packages.values()):
        return name, "ok", ", ".join(f"{package} {version}" for package, version in packages.items())
    return name, "missing", extra["install"]
