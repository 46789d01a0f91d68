"""Erase gender from word vectors and look for it with a linear probe, before and after."""

from sklearn.linear_model import LogisticRegression

import expunge as ex
from expunge.data import load_glove

glove = load_glove()  # words labelled by the end of "he - she" they lie nearest to
eraser = ex.RLACE().fit(glove.train.X, glove.train.y)
for name, change in [("before", lambda X: X), ("after", eraser.transform)]:
    for source, words in [("words of the fit", glove.train), ("new words", glove.dev)]:
        probe = LogisticRegression(max_iter=1000).fit(change(words.X), words.y)
        accuracy = probe.score(change(glove.test.X), glove.test.y)
        print(f"{name}: a probe trained on {source} is right on {accuracy:.1%} of test words")
print(eraser.certificate_)
