"""`expunge scrub`: fit an erasure at every layer of a model, on texts of a file."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from expunge.commands.output import JsonFile, check_target, console, spinner, table, write_json
from expunge.errors import InputError

__all__ = ["EXAMPLES", "load_pretrained", "read_texts", "scrub"]

EXAMPLES = """\b
Examples:
  expunge scrub ./model --data texts.parquet --concept gender -o gender.safetensors
  expunge scrub ./model --data texts.jsonl.gz --concept gender --shared -o shared.safetensors
  expunge scrub ./model --data t.parquet --concept gender --layers 'layers.*' -o g.safetensors
"""

Model = Annotated[str, typer.Argument(metavar="MODEL", help="A folder or name of a model.")]
Data = Annotated[Path, typer.Option("--data", help="Texts and labels: .parquet, .jsonl[.gz].")]
Concept = Annotated[str, typer.Option("--concept", help="The column of labels.")]
Output = Annotated[Path, typer.Option("-o", "--output", help="The file to write (.safetensors).")]
Text = Annotated[str, typer.Option("--text", help="The column of texts.")]
Layers = Annotated[str, typer.Option("--layers", help="Names or patterns, separated by commas.")]
Tokens = Annotated[str, typer.Option("--tokens", help="all, masked, cls, last, mean, not special.")]
Method = Annotated[str, typer.Option("--method", help="An eraser that streams, e.g. rlace, leace.")]
Shared = Annotated[bool, typer.Option("--shared", help="One erasure for the whole stream.")]
BatchSize = Annotated[int, typer.Option("--batch-size", help="Texts run at once.")]
MaxLength = Annotated[int | None, typer.Option("--max-length", help="Tokens kept of a text.")]
Cache = Annotated[bool, typer.Option("--cache", help="Keep states in memory: faster, more memory.")]


def scrub(
    model: Model,
    data: Data,
    concept: Concept,
    output: Output,
    text: Text = "text",
    layers: Layers = "all",
    tokens: Tokens = "all",
    method: Method = "rlace",
    shared: Shared = False,
    batch_size: BatchSize = 32,
    max_length: MaxLength = None,
    cache: Cache = False,
    json_file: JsonFile = None,
) -> None:
    """Fit an erasure at every layer of a model, each on states scrubbed below."""
    from expunge.commands.erasure_files import check_erasure_name
    from expunge.integrations import transformers as ours

    check_erasure_name(output)
    check_target(output)
    check_target(json_file, streams=True)
    texts, labels = read_texts(data, text, concept)
    with spinner("Loading the model"):
        loaded, tokenizer = load_pretrained(model, base=True)
    with spinner(f"Scrubbing {len(texts)} texts"):
        found = ours.scrub(
            loaded,
            texts,
            labels,
            layers if "," not in layers else layers.split(","),
            eraser=_eraser(method),
            tokenizer=tokenizer,
            tokens=tokens,
            shared=shared,
            cache="memory" if cache and not shared else None,
            batch_size=batch_size,
            max_length=max_length,
            random_state=0,
        )
    found.save(output)
    result = {"model": model, "file": str(output), "layers": [asdict(r) for r in found.report]}
    write_json(json_file, "scrub", result)
    shown = table("layer", "rows", "rank", "before", "after", right=("rows", "rank"))
    for row in found.report:
        amounts = (_said(row.bits_before), _said(row.bits_after))
        shown.add_row(row.layer, f"{row.n:,}", str(row.rank), *amounts)
    console().print(shown)


def read_texts(path: Path, text: str, concept: str) -> tuple[list[str], list[Any]]:
    """Two columns of a file of texts.

    Parameters
    ----------
    path : path
        Parquet, or one JSON object per line, compressed by gzip or not.
    text, concept : str
        Names of the columns.

    Returns
    -------
    list of str
    list
    """
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if path.suffix == ".parquet":
        from expunge.optional import require

        columns = require("pyarrow.parquet", "parquet").read_table(path).to_pydict()
    elif path.name.endswith((".jsonl", ".jsonl.gz")):
        content = path.read_bytes()
        lines = (gzip.decompress(content) if path.suffix == ".gz" else content).decode().split("\n")
        rows = [_row(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
        columns = {key: [row.get(key) for row in rows] for key in (rows[0] if rows else {})}
    else:
        raise InputError(
            "The kind of this file is not known", str(path), "Pass .parquet, .jsonl or .jsonl.gz"
        )
    for name in (text, concept):
        if name not in columns:
            raise InputError(
                f"{path.name} has no column of this name", repr(name), f"It has {list(columns)}"
            )
    return columns[text], columns[concept]


def _row(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError:
        row = None
    if not isinstance(row, dict):
        raise InputError(
            f"Line {number} of {path.name} is not a JSON object",
            repr(line[:60]),
            'Write one object per line, such as {"text": "...", "gender": "f"}',
        )
    return row


def load_pretrained(name: str, *, base: bool) -> tuple[Any, Any]:
    """A model and its tokenizer, or None where it has none.

    Parameters
    ----------
    name : str
        A folder, or a name known to the Hugging Face hub.
    base : bool
        Whether to load it without its head.

    Returns
    -------
    transformers.PreTrainedModel
    tokenizer or None
    """
    from expunge.optional import require

    package = require("transformers", "transformers")
    package.logging.disable_progress_bar()
    try:
        config = package.AutoConfig.from_pretrained(name)
        named = None if base else next(iter(config.architectures or ()), None)
        if named and not hasattr(package, named):
            raise ValueError(f"{named} is no class of transformers")
        loader = getattr(package, named) if named else package.AutoModel
        model = loader.from_pretrained(name).eval()
    except (OSError, ValueError) as error:
        raise InputError(
            "The model cannot be loaded", f"{name} ({str(error)[:200]})", "Pass a folder or a name"
        ) from error
    try:
        tokenizer = package.AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError, KeyError):
        return model, None
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model, tokenizer


def _eraser(method: str) -> Any:
    from expunge.commands.method_settings import find_method

    return find_method(method)()


def _said(bits: float | None) -> str:
    return "?" if bits is None else f"{bits:.3f} bit"
