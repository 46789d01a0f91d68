"""The same small table in every format, as other tools write it."""

import csv
import gzip

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
from safetensors.numpy import save_file

N, D = 1000, 6


def vectors(n=N, d=D, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def words(n=N):
    return [f"w{i}é" for i in range(n)]


def genders(n=N):
    return np.array(["f", "m"])[np.arange(n) % 2]


def table(X, fixed=True):
    """Words, labels with repeats as a dictionary, numbers, and vectors in the middle."""
    n, d = X.shape
    values = pa.array(X.ravel())
    if fixed:
        lists = pa.FixedSizeListArray.from_arrays(values, d)
    else:
        lists = pa.ListArray.from_arrays(pa.array(np.arange(n + 1) * d, pa.int32()), values)
    columns = {
        "word": words(n),
        "gender": pa.array(genders(n)).dictionary_encode(),
        "emb": lists,
        "age": np.arange(n) % 90,
    }
    return pa.table(columns).replace_schema_metadata({"made by": "hand", "version": "7"})


def write_npy(path, X):
    np.save(path, X)


def write_fortran(path, X):
    np.save(path, np.asfortranarray(X))


def write_npz(path, X):
    np.savez(path, gender=genders(len(X)), X=X, age=np.arange(len(X)) % 90, other=np.eye(3)[None])


def write_packed_npz(path, X):
    np.savez_compressed(path, X=X, gender=genders(len(X)), age=np.arange(len(X)) % 90)


def write_parquet(path, X):
    pq.write_table(table(X), path, row_group_size=300, compression="zstd")


def write_list_parquet(path, X):
    pq.write_table(table(X, fixed=False), path, row_group_size=170, compression="gzip")


def write_wide_parquet(path, X):
    columns = {"gender": genders(len(X)), **{f"e{j}": X[:, j] for j in range(X.shape[1])}}
    pq.write_table(pa.table({**columns, "age": np.arange(len(X)) % 90}), path)


def write_feather(path, X):
    pyarrow.feather.write_feather(table(X), path, chunksize=170)


def write_arrow_file(path, X):
    with pa.ipc.new_file(str(path), table(X).schema) as writer:
        writer.write_table(table(X), max_chunksize=170)


def write_arrow_stream(path, X):
    with pa.ipc.new_stream(str(path), table(X).schema) as writer:
        writer.write_table(table(X), max_chunksize=170)


def write_safetensors(path, X):
    tensors = {"age": np.arange(len(X)) % 90, "X": X, "head": np.ones((2, 3, 4), np.float32)}
    save_file(tensors, path, metadata={"made by": "hand"})


def write_csv(path, X):
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["note", "gender", *(f"e{j}" for j in range(X.shape[1])), "age"])
        for i, row in enumerate(X.astype(str).tolist()):
            note = 'a "quoted"\nnote, é' if i % 7 == 3 else f"note {i}"
            writer.writerow([note, genders(len(X))[i], *row, i % 90])


def write_glove(path, X):
    lines = (f"{w} {' '.join(r)}" for w, r in zip(words(len(X)), X.astype(str), strict=True))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_packed_glove(path, X):
    write_glove(path, X)
    path.write_bytes(gzip.compress(path.read_bytes()))


def write_word2vec_text(path, X):
    """As the original program does: with a space at the end of each line."""
    lines = (f"{w} {' '.join(r)} " for w, r in zip(words(len(X)), X.astype(str), strict=True))
    text = f"{len(X)} {X.shape[1]}\n" + "\n".join(lines) + "\n"
    path.write_text(text, encoding="utf-8")


def write_binary(path, X, end=b""):
    """As gensim does; the original program ends each vector with a line end."""
    parts = [f"{len(X)} {X.shape[1]}\n".encode()]
    for word, row in zip(words(len(X)), X, strict=True):
        parts.append(word.encode() + b" " + row.astype("<f4").tobytes() + end)
    path.write_bytes(b"".join(parts))


def write_binary_with_line_ends(path, X):
    write_binary(path, X, b"\n")


def write_packed_binary(path, X):
    write_binary(path, X)
    path.write_bytes(gzip.compress(path.read_bytes()))


# name -> (name of the file, how it is written, whether text: float16 and float64 are not its own)
MADE = {
    "npy": ("rows.npy", write_npy),
    "npy by columns": ("columns.npy", write_fortran),
    "npz": ("rows.npz", write_npz),
    "packed npz": ("packed.npz", write_packed_npz),
    "parquet": ("rows.parquet", write_parquet),
    "parquet of lists": ("lists.parquet", write_list_parquet),
    "parquet of columns": ("wide.parquet", write_wide_parquet),
    "feather": ("rows.feather", write_feather),
    "arrow file": ("rows.arrow", write_arrow_file),
    "arrow stream": ("stream.arrow", write_arrow_stream),
    "safetensors": ("rows.safetensors", write_safetensors),
    "csv": ("rows.csv", write_csv),
    "GloVe": ("glove.txt", write_glove),
    "packed GloVe": ("glove.txt.gz", write_packed_glove),
    "word2vec text": ("words.vec", write_word2vec_text),
    "word2vec binary": ("words.bin", write_binary),
    "word2vec binary with line ends": ("ends.bin", write_binary_with_line_ends),
    "packed word2vec binary": ("words.bin.gz", write_packed_binary),
}


def make(name, folder, X=None):
    """Write the file called so; gives its path."""
    file, write = MADE[name]
    write(folder / file, vectors() if X is None else X)
    return folder / file
