"""A certificate can be signed by other tools: its text is the same bytes wherever it is made, read and written again."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from certificate.samples import small
from ifonly import Certificate
from ifonly.certificate.format import canonical

ROOT = Path(__file__).resolve().parents[1]
MAKE = """
import sys, zlib
sys.path.insert(0, sys.argv[1])
from certificate.samples import small
sys.stdout.buffer.write(zlib.decompress(small().content))
"""


def test_the_text_of_plain_data_is_these_bytes() -> None:
    """What stands in docs/certificate.md about canonical text, to the byte: a signature of yesterday holds tomorrow."""
    data = {"b": [1, -2, True, None, 0.1, 1e16, 1e-05, 2.0], "a": 'é"\\\n\x7f\U0001f600', "Z": {}, "": []}
    text = canonical(data)
    assert text == (
        b'{"":[],"Z":{},"a":"\\u00e9\\"\\\\\\n\\u007f\\ud83d\\ude00","b":[1,-2,true,null,0.1,1e+16,1e-05,2.0]}'
    )
    assert hashlib.sha256(text).hexdigest() == "97b18e2e9b9ab4b74abdc3c50faed8ce7f00b0d56aeee55485ec2105b8d9c634"


def test_reading_and_writing_keeps_every_byte(tmp_path: Path) -> None:
    made = small()
    made.save(tmp_path / "answer.cert")
    again = Certificate.load(tmp_path / "answer.cert")
    again.save(tmp_path / "again.cert")
    assert (tmp_path / "again.cert").read_bytes() == (tmp_path / "answer.cert").read_bytes() == made.content
    assert zlib.decompress(made.content) == canonical(again.data)


@pytest.mark.long
@pytest.mark.parametrize("seed", ["0", "12345"])
def test_another_process_makes_the_same_text(seed: str) -> None:
    """Sets and hashes are ordered otherwise there; the text is not."""
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", MAKE, str(ROOT)], env=environment, capture_output=True, check=True)
    assert done.stdout == zlib.decompress(small().content)


def test_a_signature_of_openssl_holds_for_the_file_and_for_no_other(tmp_path: Path) -> None:
    """The commands of docs/certificate.md."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")

    def run(*words: str) -> bool:
        return subprocess.run([openssl, *words], cwd=tmp_path, capture_output=True, check=False).returncode == 0

    small().save(tmp_path / "answer.cert")
    if not run("genpkey", "-algorithm", "ed25519", "-out", "key.pem"):
        pytest.skip("this openssl has no Ed25519 keys")
    assert run("pkey", "-in", "key.pem", "-pubout", "-out", "key.pub")
    assert run("pkeyutl", "-sign", "-rawin", "-inkey", "key.pem", "-in", "answer.cert", "-out", "answer.sig")
    check = (
        "pkeyutl",
        "-verify",
        "-rawin",
        "-pubin",
        "-inkey",
        "key.pub",
        "-sigfile",
        "answer.sig",
        "-in",
        "answer.cert",
    )
    assert run(*check)
    Certificate.load(tmp_path / "answer.cert").save(tmp_path / "answer.cert")
    assert run(*check)  # read and written again, it is the same file
    content = bytearray((tmp_path / "answer.cert").read_bytes())
    content[-1] ^= 1
    (tmp_path / "answer.cert").write_bytes(content)
    assert not run(*check)
