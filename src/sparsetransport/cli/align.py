"""``sparsetransport align``."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from ..apps.word_alignment.aligner import Alignment, WordAligner
from . import pairs_file
from .cells import printable
from .console import Debug, errors, in_background, leave, plain_errors, say
from .outputs import Output, output, picture

CHUNK = 64  # pairs between two writes to the disk
COLOURS = ("cyan", "green", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta", "bright_blue")
UNALIGNED = "yellow strike"


def align(
    first: Annotated[str, typer.Argument(help="The first sentence; or, alone, a file of pairs separated by tabs.")],
    second: Annotated[str | None, typer.Argument(help="The second sentence.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="For a file of pairs: write the links, one line per pair (0-0 1-2).")
    ] = None,
    encoder: Annotated[
        str, typer.Option(help="minilm, mpnet, glove, or the name or folder of a Hugging Face model.")
    ] = "minilm",
    layer: Annotated[int | None, typer.Option(help="The hidden layer, counted from the last one, -1.")] = None,
    columns: Annotated[str, typer.Option(help="The columns of the file that hold the sentences.")] = "1,2",
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Write an empty line, not an error, for a line without these columns.")
    ] = False,
    jobs: Annotated[int, typer.Option(help="Number of threads; -1 for all cores, -2 for all but one.")] = 1,
    cache: Annotated[Path | None, typer.Option(help="A folder to cache encodings in.")] = None,
    plot: Annotated[Path | None, typer.Option(help="For two sentences: a plot, .png, .pdf or .svg.")] = None,
    debug: Debug = False,
) -> None:
    """Align the words of two sentences, or of the sentence pairs of a file."""
    with plain_errors(debug):
        if jobs == 0:
            raise ValueError(f"--jobs must be a number of threads, or -1 for all cores, got {jobs}")
        if second is not None:
            if out is not None:
                raise ValueError("--out needs a file of pairs: the links of two sentences are printed")
            drawing = picture(plot)
            with errors().status("reading the sentences"):
                found = in_background(lambda: WordAligner(encoder, layer=layer, cache=cache).align(first, second))
            _show(found)
            _draw(found, drawing)
            return
        if plot is not None:
            raise ValueError("--plot needs two sentences, not a file of pairs")
        path = Path(first)
        if not path.is_file():
            raise ValueError(f"give two sentences or a file of pairs: there is no file {first!r}")
        links = output("links", out, (), [path])
        if links.path is not None and links.path.is_dir():
            raise ValueError(f"cannot write {out}: is a folder")
        source = pairs_file.PairsFile(path, _columns(columns), skip_bad=skip_bad)
        for problem in source.bad:
            say(f"Warning: {problem}: left without links", "yellow")
        aligner = in_background(lambda: WordAligner(encoder, layer=layer, cache=cache))
        if links.path is None:
            for lines in _aligned(aligner, source, 0, jobs):
                print("\n".join(lines), flush=True)
        else:
            _to_file(aligner, source, links.path, jobs)
            links._replace(what=f"{source.count} pairs").tell()


def _columns(text: str) -> tuple[int, int]:
    """Two numbers, counted from 0."""
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(f"--columns must be two numbers such as 1,2, got {text!r}")
    return int(parts[0]) - 1, int(parts[1]) - 1


def _aligned(aligner: WordAligner, source: pairs_file.PairsFile, done: int, jobs: int) -> Iterator[list[str]]:
    """The lines of links from pair ``done`` on, in chunks, with a progress bar on a terminal."""
    pairs = islice(source.pairs(), done, None)
    with _bar(source.count, done) as step:
        while chunk := list(islice(pairs, CHUNK)):
            found = in_background(lambda held=chunk: aligner.align_many(held, n_jobs=jobs))  # type: ignore[misc]
            yield [alignment.pharaoh for alignment in found]
            step(len(chunk))


def _to_file(aligner: WordAligner, source: pairs_file.PairsFile, out: Path, jobs: int) -> None:
    """Write the links; finished lines are kept, and the same command continues after them."""
    key = source.key(aligner.encoder.name, str(aligner.settings))
    partial = pairs_file.Partial(out, key)
    if partial.done:
        say(f"{partial.done} of {source.count} pairs are in {partial.path}: continuing from there")
    try:
        with partial.opened():
            for lines in _aligned(aligner, source, partial.done, jobs):
                partial.add(lines)
    except KeyboardInterrupt:
        kept = f"{partial.done} of {source.count} pairs are kept in {partial.path}"
        say(f"Interrupted: {kept}; the same command continues from there.", "red")
        leave(130)
    partial.finish()


@contextmanager
def _bar(total: int, done: int) -> Iterator[Any]:
    """A progress bar on a terminal; yields a function that advances it."""
    console = errors()
    if not console.is_terminal:
        yield lambda count: None
        return
    columns = (TextColumn("aligning"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("aligning", total=total, completed=done)
        yield lambda count: bar.advance(task, count)


def _show(found: Alignment) -> None:
    """Print both sentences, linked words in colours, unaligned words struck out (in brackets without colours)."""
    console = Console()
    groups = _groups(found)
    first, second = (tuple(map(printable, words)) for words in (found.tokens_1, found.tokens_2))
    colour: dict[tuple[str, int], str] = {}
    for number, (rows, cols) in enumerate(groups):
        colour |= {("1", i): COLOURS[number % len(COLOURS)] for i in rows}
        colour |= {("2", j): COLOURS[number % len(COLOURS)] for j in cols}
    for side, words in (("1", first), ("2", second)):
        line = Text()
        for place, word in enumerate(words):
            style = colour.get((side, place))
            shown = word if style or console.color_system else f"[{word}]"
            line.append(" " if place else "").append(shown, style=style or UNALIGNED)
        console.print(line, soft_wrap=True)
    console.print()
    sides = [(" ".join(first[i] for i in rows), " ".join(second[j] for j in cols)) for rows, cols in groups]
    width = max((len(left) for left, _ in sides), default=0)
    for number, (left, right) in enumerate(sides):
        console.print(Text(f"{left:{width}}  {right}", style=COLOURS[number % len(COLOURS)]), soft_wrap=True)
    unaligned = ("first", first, found.unaligned_1), ("second", second, found.unaligned_2)
    for label, words, places in unaligned:
        named = " ".join(words[k] for k in places) or "none"
        console.print(Text(f"unaligned in the {label}: {named}", style="yellow" if places else "dim"), soft_wrap=True)
    console.print(f"links: {found.pharaoh}".rstrip(), highlight=False, soft_wrap=True)


def _groups(found: Alignment) -> list[tuple[list[int], list[int]]]:
    """The groups of words connected by links, of the first sentence and of the second."""
    groups: list[tuple[set[int], set[int]]] = []
    for i, j in found.links:
        touched = [group for group in groups if i in group[0] or j in group[1]]
        merged = {i}.union(*(group[0] for group in touched)), {j}.union(*(group[1] for group in touched))
        groups = [group for group in groups if group not in touched] + [merged]
    return sorted((sorted(rows), sorted(cols)) for rows, cols in groups)


def _draw(found: Alignment, drawing: Output) -> None:
    if drawing.path is not None and not (found.tokens_1 and found.tokens_2):
        raise ValueError("--plot needs words in both sentences")
    with drawing.file() as unfinished:
        if unfinished is not None:
            figure: Any = found.plot().figure
            figure.savefig(unfinished, format=drawing.ending[1:], bbox_inches="tight", dpi=150)
    drawing.tell()
