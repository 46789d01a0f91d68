"""A fit by Spark: moments of each partition, merged as a tree; only they leave the workers."""

import pickle

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession

import expunge as ex
from expunge.inputs import check_concept

rng = np.random.default_rng(0)
y = rng.integers(0, 2, 4000)
X = rng.normal(size=(4000, 8)) + np.outer(y, np.arange(8) / 4)
people = pd.DataFrame({"embedding": list(X), "gender": np.array(["f", "m"])[y]})

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.createDataFrame(people.assign(embedding=people.embedding.map(list)))


def moments(parts):
    for part in parts:
        concept = check_concept(part["gender"], len(part), concept_type="classes", whole=False)
        found = ex.Moments.of(np.stack(part["embedding"]), concept)
        yield pd.DataFrame({"moments": [pickle.dumps(found)]})


sums = frame.mapInPandas(moments, "moments binary").rdd.map(lambda row: pickle.loads(row[0]))
eraser = ex.LEACE().fit_moments(sums.treeReduce(ex.Moments.merge))

print(eraser, "on", eraser.erasure_.meta["n"], "rows")
print(eraser.certificate_)
alone = ex.LEACE().fit(X, people["gender"]).erasure_
print(f"against one machine: {np.abs(eraser.erasure_.matrix() - alone.matrix()).max():.0e}")
spark.stop()
