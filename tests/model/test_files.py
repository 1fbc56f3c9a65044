"""Network files: what is saved is what is loaded, and nothing else is."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ifonly import Network, Schema, load_model
from ifonly.errors import FileError, IfonlyError, ModelError
from ifonly.model import files, load_network, save_network
from ifonly.schema.io import replacing

NETWORK = Network.of([(np.arange(6.0).reshape(2, 3) / 7, [0.1, -0.2]), ([[1.0, -1.0 / 3]], [1e-300])])


@pytest.fixture(params=[".npz", ".json"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"network{request.param}"


@pytest.mark.parametrize("classes", [(), ("no", "yes"), (0, 1), (False, True), (np.int64(0), np.str_("one")), (0.5, 1)])
def test_a_network_comes_back_bit_for_bit(path: Path, classes: tuple[Any, ...]) -> None:
    save_network(NETWORK, path, classes=classes)
    network, names = load_network(path)
    assert network.fingerprint == NETWORK.fingerprint
    assert names == classes and all(not isinstance(name, np.generic) for name in names)


def test_the_same_network_gives_the_same_bytes(path: Path) -> None:
    save_network(NETWORK, path)
    before = path.read_bytes()
    save_network(NETWORK, path)
    assert path.read_bytes() == before


def test_a_file_remembers_that_it_is_a_regression(path: Path) -> None:
    schema = Schema.infer({"a": [0.0, 1.5], "b": [0.5, 1.0], "c": [0.1, 2.0]})
    save_network(NETWORK, path, regression=True)
    assert load_model(path, schema).classes == ()
    assert load_model(path, schema, classes=("no", "yes")).classes == ("no", "yes")
    save_network(NETWORK, path)
    assert load_model(path, schema).classes == (0, 1)
    assert load_model(path, schema, regression=True).classes == ()
    with pytest.raises(ModelError, match="A regression has no classes"):
        save_network(NETWORK, path, classes=("no", "yes"), regression=True)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(path: Path) -> None:
    save_network(NETWORK, path)
    before = path.read_bytes()

    with pytest.raises(FileError, match="Cannot write .*: No space left on device"), replacing(path) as part:
        part.write_bytes(b"half")
        raise OSError(28, "No space left on device")
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "link.npz").symlink_to(tmp_path / "real.npz")
    save_network(NETWORK, tmp_path / "link.npz")
    assert (tmp_path / "link.npz").is_symlink() and load_network(tmp_path / "real.npz")[0] == NETWORK


def test_every_truncation_is_refused(path: Path) -> None:
    save_network(NETWORK, path, classes=("no", "yes"))
    whole = path.read_bytes()
    for length in sorted({*range(0, len(whole) - 1, 37), len(whole) - 2}):
        path.write_bytes(whole[:length])
        with pytest.raises(FileError, match="is not a network file of ifonly, or is damaged|is not a network file"):
            load_network(path)


def test_flipped_bytes_are_refused_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "network.npz"
    save_network(NETWORK, path)
    whole = bytearray(path.read_bytes())
    for place in range(0, len(whole), 11):
        changed = bytearray(whole)
        changed[place] ^= 0x5A
        path.write_bytes(changed)
        try:
            network, _ = load_network(path)
        except IfonlyError as error:
            assert "\n" not in str(error)
        else:  # dates and attributes in the zip directory mean nothing
            assert network == NETWORK


def write_zip(path: Path, arrays: dict[str, Any], **entries: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(array))
            archive.writestr(f"{name}.npy", buffer.getvalue())
        for name, content in entries.items():
            archive.writestr(f"{name}.npy", content)


def head(**fields: Any) -> Any:
    return np.array(json.dumps({"format": "ifonly-network", "version": 1, "classes": [], "layers": 1, **fields}))


def claiming(shape: str) -> bytes:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


PICKLED = claiming("(1, 1)").replace(b"'<f8'", b"'|O' ")
ONES: dict[str, Any] = {"weight0": np.ones((1, 3)), "bias0": np.ones(1)}


@pytest.mark.parametrize(
    ("arrays", "entries", "message"),
    [
        ({"head": head(), "bias0": [1.0]}, {"weight0": PICKLED}, "'weight0' holds object, not numbers"),
        ({"head": head(), "weight0": [["a"]], "bias0": [1.0]}, {}, "'weight0' holds <U1, not numbers"),
        ({"head": head(), "weight0": [[1j]], "bias0": [1.0]}, {}, "holds complex128, not numbers"),
        ({"head": np.ones(3), **ONES}, {}, "'head' holds float64, not text"),
        ({"head": head(layers=2), **ONES}, {}, "claims 2 layers, but has no 'weight1'"),
        ({"head": head(layers=10**9), **ONES}, {}, "claims 1000000000 layers"),
        ({"head": head(layers=True), **ONES}, {}, "claims True layers"),
        ({"head": head(version=2), **ONES}, {}, "has version 2; this ifonly reads version 1"),
        ({"head": head(format="other"), **ONES}, {}, "is not a network file of ifonly"),
        ({"head": head(classes=[[1], 2]), **ONES}, {}, "class names must be a list of strings, numbers or booleans"),
        ({"head": head(regression=1), **ONES}, {}, '"regression" must be true or false'),
        (ONES, {}, "has no 'head'"),
        ({"head": head(), "bias0": [1.0]}, {"weight0": claiming("(100000, 100000)")}, "claims 80000000000 bytes"),
        ({"head": head(), "bias0": [1.0]}, {"weight0": claiming("(1, 3)")}, "claims 24 bytes, which it does not have"),
        ({"head": head(), "bias0": [1.0]}, {"weight0": b"no header"}, "or is damaged"),
        ({"head": head(), "weight0": np.full((1, 3), np.nan), "bias0": [1.0]}, {}, "NaN or infinite entries"),
        ({"head": head(), "weight0": np.ones((2, 3)), "bias0": np.ones(1)}, {}, "has 2 outputs but 1 biases"),
    ],
)  # fmt: skip
def test_hostile_archives(
    arrays: dict[str, Any], entries: dict[str, bytes], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "network.npz"
    monkeypatch.setattr("pickle.loads", None)  # nothing may be unpickled
    monkeypatch.setattr("pickle.load", None)
    write_zip(path, arrays, **entries)
    with pytest.raises(IfonlyError, match=message) as caught:
        load_network(path)
    assert "\n" not in str(caught.value)


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "network.npz"
    write_zip(path, {"head": head(), "weight0": np.zeros((1000, 1000)), "bias0": np.zeros(1000)})
    assert path.stat().st_size < 50_000
    monkeypatch.setattr(files, "MAX_BYTES", 100_000)
    monkeypatch.setattr(zipfile.ZipFile, "open", None)
    with pytest.raises(FileError, match="would unpack to 3 arrays of 8"):
        load_network(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "or is damaged"),
        ("{", "or is damaged"),
        ("[]", "is not a network file of ifonly"),
        ('{"format": "ifonly-network", "version": 1}', '"layers" must be a list of 1 to 1000 layers'),
        ('{"format": "ifonly-network", "version": 1, "layers": [{}]}', "or is damaged"),
        ('{"format": "ifonly-network", "version": 1, "layers": [{"weight": [["1"]], "bias": [1]}]}', "not numbers"),
        ('{"format": "ifonly-network", "version": 1, "layers": [{"weight": [[true]], "bias": [1]}]}', "not numbers"),
        ('{"format": "ifonly-network", "version": 1, "layers": [{"weight": [[1], [1, 2]], "bias": [1]}]}', "damaged"),
        ('{"format": "ifonly-network", "version": 1, "layers": [{"weight": [[NaN]], "bias": [1]}]}', "NaN or infinite"),
        ('{"format": "ifonly-network", "version": 1, "layers": [{"weight": [[1]], "bias": [1e999]}]}', "NaN or inf"),
    ],
)
def test_hostile_json(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "network.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(IfonlyError, match=message) as caught:
        load_network(path)
    assert "\n" not in str(caught.value)


def test_wrong_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileError, match="Cannot read the network .*none.npz': No such file"):
        load_network(tmp_path / "none.npz")
    with pytest.raises(FileError, match="Cannot write .*: No such file"):
        save_network(NETWORK, tmp_path / "none" / "network.npz")
    for name in ("network.txt", "network"):
        with pytest.raises(FileError, match=rf"ends in .npz or .json; '{name}' does not"):
            save_network(NETWORK, tmp_path / name)
        with pytest.raises(FileError, match=rf"ends in .npz or .json; '{name}' does not"):
            load_network(tmp_path / name)
    with pytest.raises(ModelError, match=r"class name \(1, 2\) is not a string"):
        save_network(NETWORK, tmp_path / "network.npz", classes=((1, 2), 3))
    save_network(NETWORK, tmp_path / "network.json")
    monkeypatch.setattr(files, "MAX_JSON_BYTES", 10)
    with pytest.raises(FileError, match="is larger than"):
        load_network(tmp_path / "network.json")


@pytest.mark.parametrize("ending", ["npz", "json"])
def test_a_network_that_relies_on_bounds_is_not_asked_beyond_them(tmp_path: Path, ending: str) -> None:
    """A unit that passes a value on is on within the bounds of the schema; beyond them it would be another function."""
    torch = pytest.importorskip("torch")
    import ifonly

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.LeakyReLU(0.1), torch.nn.Linear(4, 1)).double()
    narrow = ifonly.Schema([ifonly.Real("x", -1, 1), ifonly.Real("y", -2, 2)])
    wide = narrow.replace(ifonly.Real("y", -2, 2000))
    network = ifonly.import_model(module, narrow).network
    ifonly.model.save_network(network, tmp_path / f"n.{ending}")
    read, _ = ifonly.model.load_network(tmp_path / f"n.{ending}")
    assert read == network and read.within is not None
    ifonly.Explainer(read, schema=narrow)
    with pytest.raises(ModelError, match=r"only where 'y' is in \[-2, 2\].*may be in \[-2, 2000\].*Import the model"):
        ifonly.Explainer(read, schema=wide)
    ifonly.import_model(module, wide)
    plain = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)).double()
    assert ifonly.import_model(plain, narrow).network.within is None
