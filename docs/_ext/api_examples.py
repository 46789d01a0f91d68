"""Examples for API pages whose docstring has none: records, constants and bases to build upon.

A function shows its own example. A record is what a function returns, so its page shows how to get
it. The tests run every one.
"""

from __future__ import annotations

START = """
>>> import numpy as np
>>> import expunge as ex
>>> rng = np.random.default_rng(0)
>>> y = rng.integers(0, 2, 400)
>>> X = rng.normal(size=(400, 4)) + np.outer(y, [2, 1, 0, 0])
"""
WORDS = """
>>> import expunge as ex
>>> from expunge.data import load_glove, load_simlex, load_word_lists
>>> glove = load_glove()
"""

EXAMPLES = {
    "expunge.Audit": START
    + """
>>> eraser = ex.LEACE().fit(X[:200], y[:200])
>>> audit = ex.audit(eraser, X[:200], y[:200], X[200:], y[200:], probes=["linear SVM"])
>>> sorted(audit.to_dict())[:3]
['association', 'certificates', 'concept']
""",
    "expunge.Frontier": START
    + """
>>> found = ex.frontier(X, y, [ex.LEACE()], probes=["linear SVM"])
>>> [point.name for point in found.points][-1]
'LEACE()'
""",
    "expunge.Certificate": START
    + """
>>> certificate = ex.LEACE().fit(X, y).certificate_
>>> certificate.erased, certificate.bits_left < 1e-9, round(certificate.bound, 3)
(True, True, 0.688)
""",
    "expunge.ColumnLoss": """
>>> import expunge as ex
>>> issubclass(ex.ColumnLoss, ex.Loss)
True
""",
    "expunge.Comparison": START
    + """
>>> table = ex.compare(X, y, methods=["LEACE", "INLP"], probes="linear", runs=1)
>>> [row.method for row in table.rows]
['nothing', 'LEACE', 'INLP']
""",
    "expunge.ERASERS": """
Every eraser, by its name. The command line takes the same names.

>>> import expunge as ex
>>> sorted(ex.ERASERS)[:4]
['FoldEraser', 'INLP', 'LEACE', 'MeanProjection']
>>> ex.ERASERS["LEACE"]()
LEACE()
""",
    "expunge.LOSSES": """
Every built-in loss, by its name.

>>> import expunge as ex
>>> sorted(ex.LOSSES)
['cross_entropy', 'hinge', 'huber', 'squared', 'squared_hinge']
""",
    "expunge.SOLVERS": """
Every solver of the game, by its name.

>>> import expunge as ex
>>> sorted(ex.SOLVERS)
['closed_form', 'descent_ascent', 'subspace_ascent']
""",
    "expunge.LabelPlan": START
    + """
>>> plan = ex.plan_labels(X, y, target=0.55)
>>> plan.labels > 100
True
""",
    "expunge.Loss": """
>>> import expunge as ex
>>> issubclass(ex.ColumnLoss, ex.Loss), "hinge" in ex.LOSSES
(True, True)
""",
    "expunge.RankPath": START
    + """
>>> path = ex.rank_path(X, np.digitize(X[:, 0], [0, 1, 2]), ranks=[1, 2])
>>> [point.rank for point in path.points]
[0, 1, 2]
""",
    "expunge.Reproduction": """
>>> import expunge as ex
>>> list(ex.Reproduction.__annotations__)
['experiment', 'results', 'tables', 'pictures', 'findings', 'out']
""",
    "expunge.Solver": """
>>> import expunge as ex
>>> all(issubclass(solver, ex.Solver) for solver in ex.SOLVERS.values())
True
""",
    "expunge.SubspaceAscent": START
    + """
>>> classes = np.digitize(X[:, 0], [0, 1, 2])
>>> ex.RLACE(1, solver=ex.SubspaceAscent(explore=4), random_state=0).fit(X, classes).solver_
'subspace_ascent'
""",
    "expunge.data.LabelledWords": WORDS
    + """
>>> glove.test.words[:3], glove.test.X.shape, glove.test.y[:3]
(('provincial', 'vliet', 'bazargan'), (4500, 100), array([0, 1, 0]))
""",
    "expunge.data.GloveGender": WORDS
    + """
>>> len(glove), "ocean" in glove, glove.neighbours("ocean")
(23338, True, ('sea', 'waters', 'seas'))
""",
    "expunge.data.OrlFaces": """
>>> from expunge.data import load_orl_faces
>>> faces = load_orl_faces()
>>> faces.images.shape, int(faces.glasses.sum())
((400, 50, 50), 119)
""",
    "expunge.data.SimLex": WORDS
    + """
>>> simlex = load_simlex()
>>> len(simlex), simlex.pairs[0]
(999, ('old', 'new'))
""",
    "expunge.data.WordLists": WORDS
    + """
>>> lists = load_word_lists()
>>> lists.definitional_pairs[:2]
(('woman', 'man'), ('girl', 'boy'))
""",
    "expunge.data.WeatTest": WORDS
    + """
>>> test = load_word_lists().weat[5]
>>> test.first_target.name, test.second_attribute.name
('Male names', 'Family')
""",
    "expunge.data.WordSet": WORDS
    + """
>>> load_word_lists().weat[5].first_attribute.words[:3]
('executive', 'management', 'professional')
""",
    "expunge.files.FORMATS": """
Every format of files, by its ending.

>>> from expunge.files import FORMATS
>>> ".parquet" in FORMATS, ".npy" in FORMATS
(True, True)
""",
    "expunge.files.VectorFile": START
    + """
>>> import tempfile
>>> from pathlib import Path
>>> from expunge.files import open_file
>>> path = Path(tempfile.mkdtemp()) / "rows.npy"
>>> np.save(path, X)
>>> file = open_file(path)
>>> file.n, file.d
(400, 4)
""",
    "expunge.integrations.adversarial.Evaluation": """
>>> from expunge.integrations.adversarial import Evaluation
>>> list(Evaluation.__dataclass_fields__)
['step', 'train_loss', 'dev_loss', 'task_accuracy', 'adversary_loss', 'adversary_accuracy']
""",
    "expunge.integrations.transformers.LayerReport": """
>>> from expunge.integrations.transformers import LayerReport
>>> list(LayerReport.__dataclass_fields__)
['layer', 'n', 'rank', 'bits_before', 'bits_after', 'share_before', 'share_after']
""",
    "expunge.integrations.transformers.ScrubEvaluation": """
>>> from expunge.integrations.transformers import ScrubEvaluation
>>> list(ScrubEvaluation.__dataclass_fields__)
['layers', 'texts', 'chance', 'probes', 'loss', 'kl', 'task', 'ranks']
""",
    "expunge.integrations.transformers.uninstall": """
>>> import torch
>>> import expunge as ex
>>> from expunge.integrations.transformers import install, uninstall
>>> model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Flatten())
>>> x, first = torch.tensor([[3.0, 4.0]]), ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]])
>>> install(model, {"0": first})(x)
tensor([[0., 4.]])
>>> uninstall(model)(x)
tensor([[3., 4.]])
""",
    "expunge.metrics.BitsLeft": START
    + """
>>> losses = np.where(y == 1, 0.1, 0.2)  # of a probe, one for each row
>>> left = ex.metrics.bits_left(losses, y)
>>> 0 < left.bits < 1
True
""",
    "expunge.metrics.Damage": START
    + """
>>> lost = ex.metrics.damage(X, ex.LEACE().fit_transform(X, y))
>>> lost.n_rows, lost.n_features
(400, 4)
""",
    "expunge.metrics.NeighbourChange": WORDS
    + """
>>> clean = ex.RLACE().fit(glove.train.X, glove.train.y).transform(glove.vectors)
>>> (change,) = ex.metrics.neighbour_changes(glove.vectors, clean, glove.words, ["nurse"])
>>> change.before
('doctor', 'nurses', 'physician', 'nursing', 'dentist')
""",
    "expunge.metrics.PcaScatter": START
    + """
>>> picture = ex.metrics.pca_scatter(X, ex.LEACE().fit_transform(X, y))
>>> picture.before.shape, picture.after.shape
((400, 2), (400, 2))
""",
    "expunge.metrics.SimilarityCorrelation": WORDS
    + """
>>> found = ex.metrics.similarity_correlation(glove.vectors, glove.words)
>>> found.n_used, round(found.spearman, 1)
(999, 0.3)
""",
    "expunge.metrics.TaskDamage": START
    + """
>>> clean = ex.LEACE().fit_transform(X, y)
>>> task = (X[:, 2] > 0).astype(int)
>>> old, new = slice(200), slice(200, None)
>>> found = ex.metrics.task_damage(X[old], clean[old], task[old], X[new], clean[new], task[new])
>>> found.accuracy_before > 0.9, found.accuracy_after > 0.9
(True, True)
""",
    "expunge.metrics.TprGaps": """
>>> import expunge as ex
>>> gaps = ex.metrics.tpr_gaps(["a", "a", "b", "b"], ["a", "b", "b", "b"], ["f", "m", "f", "m"])
>>> gaps.classes, gaps.gap_groups, gaps.gaps[:, 0]
(('a', 'b'), ('m',), array([-1.,  0.]))
""",
    "expunge.metrics.VMeasure": START
    + """
>>> found = ex.metrics.v_measure(X, y, [2, 4])
>>> len(found.mean)
2
""",
    "expunge.metrics.Weat": START
    + """
>>> found = ex.metrics.weat(X[:50], X[50:100], X[100:150], X[150:200])
>>> type(found).__name__, -2 < found.effect_size < 2
('Weat', True)
""",
    "expunge.metrics.WordWeat": WORDS
    + """
>>> found = ex.metrics.weat_tests(glove.vectors, glove.words, permutations=100)
>>> found[0].name, found[0].weat.effect_size > 0.5
('math-art', True)
""",
    "expunge.rows.DenseRows": START
    + """
>>> from expunge.rows import DenseRows
>>> rows = DenseRows(X)
>>> rows.n_samples, rows.n_features, rows.dtype
(400, 4, dtype('float64'))
""",
    "expunge.rows.GlmPass": """
>>> from expunge.rows import GlmPass
>>> list(GlmPass.__annotations__)
['value', 'coef', 'intercept', 'curvature', 'accuracy']
""",
    "expunge.rows.Reading": """
>>> from expunge.rows import Reading
>>> list(Reading.__annotations__)
['moments', 'fingerprint', 'task', 'by_class', 'look']
""",
    "expunge.rows.Rows": START
    + """
>>> from expunge.rows import DenseRows, Rows
>>> issubclass(DenseRows, Rows)
True
>>> [block.shape for _, block in DenseRows(X).blocks()]
[(400, 4)]
""",
}
