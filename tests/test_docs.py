"""The code of README.md and docs/ runs, top to bottom, and prints what is written below it; so do the examples."""

import contextlib
import doctest
import importlib
import importlib.util
import io
import json
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OTHERS = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "docs" / "reliability.md"]  # without code
PAGES = [ROOT / "README.md", *sorted({*(ROOT / "docs").glob("*.md")} - {*OTHERS})]
MODULES = ["", "plotting", "nn", "apps.network_design", "baselines", "estimators", "experiments"]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OURS = re.compile(r"https://(github|raw.githubusercontent)\.com/sparsetransport/sparsetransport/((blob|tree)/)?main/")
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
OPTIONAL = ("jax", "matplotlib", "ot", "pandas", "sklearn", "torch")


def blocks(page: Path) -> list[tuple[int, str, str | None]]:
    """The Python blocks of a page: the line they start at, their code, and the output given right after them."""
    text = page.read_text(encoding="utf-8")
    fences = list(FENCE.finditer(text))
    found = []
    for k, fence in enumerate(fences):
        if fence[1] != "python":
            continue
        following = fences[k + 1] if k + 1 < len(fences) else None
        follows = following is not None and following[1] == "text" and not text[fence.end() : following.start()].strip()
        found.append((text[: fence.start()].count("\n") + 2, fence[2], following[2] if follows and following else None))
    return found


def absent(code: str) -> list[str]:
    """Optional packages that the code imports and that are not installed."""
    return [
        name
        for name in OPTIONAL
        if re.search(rf"^\s*(import|from) {name}\b", code, re.M) and not importlib.util.find_spec(name)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    namespace = {"__name__": page.stem}
    assert blocks(page)
    for line, code, output in blocks(page):
        if missing := absent(code):  # what follows may need what it defines
            pytest.skip(f"from line {line} on needs {' and '.join(missing)}")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)
        if output is not None:
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert doctest.OutputChecker().check_output(output, printed.getvalue(), flags), printed.getvalue()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_notebook_runs_and_holds_what_it_prints(notebook, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    code = ["".join(cell["source"]) for cell in cells]
    if missing := absent("\n".join(code)):
        pytest.skip(f"needs {' and '.join(missing)}")
    namespace = {"__name__": notebook.stem}
    for cell, text in zip(cells, code, strict=True):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(text, namespace)
        assert cell["outputs"] or "print(" not in text, "the notebook is not executed"
        held = "".join("".join(out["text"]) for out in cell["outputs"] if out["output_type"] == "stream")
        assert printed.getvalue() == held
    pyplot.close("all")


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 2


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    """To a file that is there and, after a #, to a heading of it."""
    for target, heading in re.findall(r"\]\(([^)#\s]*)(?:#([^)]+))?\)", page.read_text(encoding="utf-8")):
        ours = OURS.match(target)
        if ours or "://" not in target:
            place = ROOT / target[ours.end() :] if ours else page.parent / target if target else page
            if target.startswith("gallery/"):  # which the site is made of
                name = target.removeprefix("gallery/")
                place = ROOT / "examples" / ("GALLERY_HEADER.rst" if name == "index" else f"{name}.py")
            assert place.exists(), target
            assert not heading or heading in headings(place), heading


def headings(page: Path) -> list[str]:
    """What a # leads to."""
    found = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in found]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference(module):
    if module == "nn":
        pytest.importorskip("torch")
    if module == "estimators":
        pytest.importorskip("sklearn")
    names = importlib.import_module(f"sparsetransport.{module}".rstrip(".")).__all__
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    code = " ".join(re.findall(r"`([^`\n]+)`", page))
    assert not [name for name in names if not re.search(rf"\b{name}\b", code)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_runs(example, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    if missing := absent(example.read_text(encoding="utf-8")):
        pytest.skip(f"needs {' and '.join(missing)}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    runpy.run_path(str(example), run_name="__main__")
    pictures = list(tmp_path.glob("*.png"))
    assert pictures, "an example leaves a picture"
    assert all(picture.stat().st_size > 5_000 for picture in pictures)
    for figure in map(pyplot.figure, pyplot.get_fignums()):
        inked, page = figure.get_tightbbox(), figure.bbox_inches
        cut = max(page.x0 - inked.x0, page.y0 - inked.y0, inked.x1 - page.x1, inked.y1 - page.y1)
        assert cut < 0.01, f"{cut:.2f} inches are cut off"
    pyplot.close("all")


def test_the_pages_have_code_and_the_examples_exist():
    assert all(blocks(page) for page in PAGES)
    assert len(EXAMPLES) >= 15
