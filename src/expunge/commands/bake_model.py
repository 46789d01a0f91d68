"""`expunge bake`: a model whose weights do the erasing, in a folder of its own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from expunge.commands.output import JsonFile, check_target, console, spinner, write_json
from expunge.commands.scrub_model import load_pretrained
from expunge.errors import BadArtifact, InputError

__all__ = ["EXAMPLES", "bake"]

EXAMPLES = """\b
Examples:
  expunge bake ./model shared.safetensors -o ./model-without-gender
"""

Model = Annotated[str, typer.Argument(metavar="MODEL", help="A folder or name of a model.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A saved scrubbing or erasure.")]
Folder = Annotated[Path, typer.Option("-o", "--output", help="The folder to write; must be new.")]
Force = Annotated[bool, typer.Option("--force", help="Take a file fitted on another model.")]


def bake(
    model: Model, file: File, output: Folder, force: Force = False, json_file: JsonFile = None
) -> None:
    """Write a plain model without the concept: it needs no expunge to run."""
    from expunge.integrations import transformers as ours

    check_target(json_file, streams=True)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError("The folder to write to is not empty", str(output), "Name a new one")
    erasures = _erasures(file)
    with spinner("Loading the model"):
        loaded, tokenizer = load_pretrained(model, base=False)
    parent = output.resolve().parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=".bake-") as unfinished:
        made = Path(unfinished) / "model"
        with spinner("Baking"):
            baked = ours.bake(loaded, erasures, path=made, force=force)
        if tokenizer is not None:
            tokenizer.save_pretrained(made)
        if output.exists():
            output.rmdir()
        os.replace(made, output)
    told = baked.config.expunge
    write_json(json_file, "bake", {"model": model, "folder": str(output), **told})
    console().print(f"{output}: {type(baked).__name__}, {told['way']} erased by the weights")


def _erasures(file: Path) -> Any:
    from expunge.erasure import Erasure
    from expunge.integrations.transformers import Scrubbing

    try:
        return Scrubbing.load(file)
    except BadArtifact as error:
        if "holds a 'erasure'" not in str(error):
            raise
        return Erasure.load(file)
