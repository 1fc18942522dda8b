"""The site builds without a warning, and works in a browser."""

import functools
import http.server
import importlib
import re
import shutil
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import sparsetransport as st

pytest.importorskip("sphinx", reason="pip install -r requirements-docs.txt")
pytest.importorskip("sphinx_gallery", reason="pip install -r requirements-docs.txt")

ROOT = Path(__file__).parent.parent
BUILT = ROOT / "build" / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site without running the gallery, from a copy, since sources of pages are made beside the others."""
    folder = tmp_path_factory.mktemp("site")
    for name in ("docs", "examples", "results"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("gallery", "api", "*.npz", "*.npy"))
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder)
    options = "--quiet", "--fail-on-warning", "--keep-going", "-D", "plot_gallery=0"
    call = [sys.executable, "-m", "sphinx", *options, str(folder / "docs"), str(folder / "site")]
    run = subprocess.run(call, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return folder / "site"


def test_every_example_is_in_the_gallery(site):
    examples = sorted((ROOT / "examples").glob("plot_*.py"))
    assert len(examples) >= 15
    page = (site / "gallery" / "index.html").read_text(encoding="utf-8")
    assert not [example.stem for example in examples if f"{example.stem}.html" not in page]


def test_every_public_function_and_class_has_a_page(site):
    """Named efforts are values, and on the page of `Effort`."""
    values = {name for name in st.__all__ if isinstance(getattr(st, name), st.Effort)}
    assert not [
        name for name in set(st.__all__) - values if not (site / "api" / f"sparsetransport.{name}.html").exists()
    ]


@pytest.mark.parametrize(
    "module",
    ["estimators", "plotting", "nn", "jax", "baselines", "apps.network_design", "apps.word_alignment"],
)
def test_every_function_and_class_of_a_module_has_a_page(site, module):
    """Except those that only ask for an optional dependency."""
    held = importlib.import_module(f"sparsetransport.{module}")
    names = [name for name in held.__all__ if callable(getattr(held, name)) and not name.startswith("require_")]
    pages = [path.read_text(encoding="utf-8") for path in (site / "api").glob(f"sparsetransport.{module}.*.html")]
    assert not [name for name in names if not any(f'id="sparsetransport.{module}.{name}"' in page for page in pages)]


def test_names_of_files_differ_by_more_than_case(site):
    """Elsewhere two pages would be one file."""
    names = [path.relative_to(site).as_posix().lower() for path in site.rglob("*.html")]
    assert not {name for name in names if names.count(name) > 1}


def test_pages_of_the_api_show_what_users_see(site):
    """Titles without the name of the package, which break in the middle; formulas; no private arguments."""
    for path in (site / "api").glob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert "<title>sparsetransport." not in page, path
        assert "\\(\\\\" not in page, path  # a formula that begins with a doubled backslash
        assert not re.search(r'class="sig-param"><span class="n"><span class="pre">_', page), path


def test_the_search_index_has_the_guide(site):
    assert "budget" in (site / "searchindex.js").read_text(encoding="utf-8")


class Links(HTMLParser):
    """The addresses that a page leads to, and the places in it that have a name."""

    def __init__(self):
        super().__init__()
        self.links, self.places = [], set()

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.links += [found[name] for name in ("href", "src") if found.get(name)]
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}


def test_no_link_within_the_site_is_dead(site):
    pages = {}
    for path in site.rglob("*.html"):
        pages[path] = Links()
        pages[path].feed(path.read_text(encoding="utf-8"))
    dead = []
    for path, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            if address.scheme or address.netloc or path.name == "search.html":
                continue
            place = unquote(address.fragment)
            if not target.exists() or (place and target in pages and place not in pages[target].places):
                dead.append((path.relative_to(site).as_posix(), link))
    assert len(pages) > 50
    assert not dead


@pytest.fixture(scope="module")
def page(site):
    """A page of Chromium, at the site that `make docs` has built, or else at the one without pictures."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("needs Chromium: apt install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install -r requirements-docs.txt")
    folder = BUILT if (BUILT / "index.html").exists() else site

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with playwright.sync_playwright() as started:
            chromium = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            opened = chromium.new_page(base_url=f"http://127.0.0.1:{server.server_port}")
            opened.complaints = []
            opened.on("console", lambda said: said.type == "error" and opened.complaints.append(said.text))
            opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
            yield opened
            chromium.close()
        server.shutdown()


def test_pages_open_without_an_error(page):
    for name in (
        "index",
        "guide",
        "from-other-tools",
        "gallery/index",
        "api/sparsetransport.solve",
        "notebooks/first-hour",
    ):
        page.complaints.clear()
        assert page.goto(f"/{name}.html").ok
        local = [text for text in page.complaints if "ERR_NAME_NOT_RESOLVED" not in text and "ERR_INTERNET" not in text]
        assert not local, name


def test_search_finds_the_guide(page):
    page.goto("/search.html?q=budget")
    page.wait_for_selector("#search-results li a")
    assert any("guide.html" in link.get_attribute("href") for link in page.query_selector_all("#search-results li a"))


def test_pictures_of_the_gallery_load(page):
    page.goto("/gallery/index.html")
    widths = page.eval_on_selector_all(".sphx-glr-thumbcontainer img", "all => all.map(one => one.naturalWidth)")
    assert len(widths) >= 15
    assert min(widths) > 0


def test_a_phone_shows_pages_without_scrolling_sideways(page):
    page.set_viewport_size({"width": 390, "height": 800})
    for name in ("index", "guide", "benchmarks", "gallery/index", "notebooks/first-hour", "api/sparsetransport.solve"):
        page.goto(f"/{name}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
