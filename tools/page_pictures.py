"""The recourse desk in a browser: its pictures for the documents, and how long it takes from a hand to a picture.

    python tools/page_pictures.py                     # docs/images/desk.png and desk-narrow.png
    python tools/page_pictures.py --time 200          # milliseconds from the input of a slider to the drawn answer

Needs playwright and a chromium. The time is taken in the page, on loopback, from the input event to the frame in which
the answer stands in the document; Credit, the shipped network (2x10) and one of 2x50.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
SETTLED = '#desk[data-settled="yes"]'
DRAG = """async ({ feature, count }) => {
  const slider = document.querySelector(`[data-feature="${feature}"] input[type=range]`);
  const took = document.getElementById("took");
  const [low, high] = [Number(slider.min), Number(slider.max)];
  const times = [];
  for (let k = 0; k < count; k += 1) {
    const drawn = new Promise((done) => {
      const observer = new MutationObserver(() => { observer.disconnect(); done(performance.now()); });
      observer.observe(took, { attributes: true, attributeFilter: ["data-at"] });
    });
    const begun = performance.now();
    slider.value = String(low + (high - low) * (0.02 + 0.9 * ((k * 37) % 101) / 101));
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    times.push((await drawn) - begun);
  }
  return times;
}"""


@contextmanager
def serving(*words: str) -> Iterator[str]:
    """The address of a desk."""
    command = [sys.executable, "-m", "ifonly", "serve", "--port", "0", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = next((m for line in process.stderr if (m := re.search(r"http://\S+", line))), None)
        if found is None:
            raise SystemExit("The desk did not start.")
        yield found[0]
    finally:
        process.terminate()
        process.wait()


@contextmanager
def browsing(width: int, height: int, scheme: str) -> Iterator[Any]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme, locale="en-US")
        browser.close()


def pictures() -> None:
    with serving("--demo") as address:
        with browsing(1400, 1050, "light") as page:
            page.goto(address)
            page.wait_for_selector(SETTLED)
            for name in ("isMale", "AgeGroup"):
                page.click(f'[data-feature="{name}"] .tool.fixed')
            page.locator("#ways label").nth(2).click()
            page.wait_for_selector("#compare table")
            save(page, "desk.png")
        with browsing(400, 820, "dark") as page:
            page.goto(address)
            page.wait_for_selector(SETTLED)
            save(page, "desk-narrow.png")


def save(page: Any, name: str) -> None:
    page.wait_for_timeout(400)
    page.screenshot(path=IMAGES / name)
    print(f"{name}: {(IMAGES / name).stat().st_size / 1000:.0f} kB")


def timed(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, words in (("2x10", ["--demo"]), ("2x50", larger(Path(folder)))):
            with serving(*words) as address, browsing(1400, 900, "light") as page:
                page.goto(address)
                page.wait_for_selector(SETTLED)
                for ways in (1, 3):
                    page.locator("#ways label").nth(ways - 1).click()
                    page.wait_for_selector(SETTLED)
                    asked = {"feature": "MostRecentPaymentAmount", "count": count}
                    page.evaluate(DRAG, {**asked, "count": 20})
                    times = sorted(page.evaluate(DRAG, asked))
                    middle, late = times[len(times) // 2], times[int(0.95 * len(times))]
                    told = f"least {times[0]:.1f}, median {middle:.1f}, 95 % {late:.1f} ms"
                    print(f"Credit {name}, {ways} answer(s): {told}", flush=True)


def larger(folder: Path) -> list[str]:
    """The network of 2x50 among the reference cases, as files for a desk."""
    sys.path.insert(0, str(ROOT / "tests"))
    from cases import load
    from ifonly.model import save_network

    model, points, _ = load("credit", "2x50")
    save_network(model.network, folder / "net.npz", classes=("deny", "approve"))
    model.schema.save(folder / "schema.json")
    (folder / "people.jsonl").write_text(json.dumps(model.schema.row(points[0])) + "\n")
    return [word for option, file in (("model", "net.npz"), ("schema", "schema.json"), ("people", "people.jsonl"))
            for word in (f"--{option}", str(folder / file))]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", type=int, metavar="N", help="time N changes of a slider instead")
    asked = parser.parse_args()
    if asked.time:
        timed(asked.time)
    else:
        pictures()


if __name__ == "__main__":
    main()
