"""Stream hidden states into an eraser, put it into the network as a layer, fold it away."""

import torch
from torch import nn

import expunge as ex
from expunge.integrations.torch import ErasureLayer, fold_into

torch.manual_seed(0)
torch.set_num_threads(1)
N, D, BATCH = 20_000, 32, 500

task, group = torch.randint(0, 2, (2, N))  # what to predict, and what not to know
X = torch.randn(N, D) + torch.outer(task, torch.randn(D)) + torch.outer(group, torch.randn(D))

encoder, head = nn.Sequential(nn.Linear(D, 128), nn.GELU(), nn.Linear(128, 64)), nn.Linear(64, 2)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
for rows in torch.arange(N).split(BATCH):
    loss = nn.functional.cross_entropy(head(encoder(X[rows])), task[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

eraser = ex.LEACE()
for rows in torch.arange(N).split(BATCH):  # hidden states may hang on a graph; sums are kept only
    eraser.partial_fit(encoder(X[rows]).bfloat16(), group[rows])
print(f"{N:,} hidden states in bfloat16, {BATCH} at a time: {eraser.erasure_}")

layer = ErasureLayer(eraser.erasure_)
plain = nn.Sequential(encoder, head)
erasing = nn.Sequential(encoder, layer, head)
folded = nn.Sequential(encoder, fold_into(eraser.erasure_, head))  # as many layers as before

nothing = ex.Erasure(torch.zeros(64, 0), torch.zeros(0, 64))
with torch.no_grad():
    hidden = encoder(X).bfloat16()
    for name, states in [("before", hidden), ("after", layer(hidden))]:
        bits = ex.certify(nothing, states, group).bits_left
        print(f"{name}: a linear predictor finds at most {bits:.5f} bits of the group in a state")
    for name, model in [("plain", plain), ("erasing", erasing), ("folded", folded)]:
        right = (model(X).argmax(dim=1) == task).float().mean()
        print(f"{name} network: task right on {right:.1%} of rows")
    print(f"folded against layer: {(folded(X) - erasing(X)).abs().max():.0e}")
