"""Every format gives the same rows, wherever one begins to read."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import MADE, D, N, genders, make, vectors, words

import expunge as ex
from expunge.files import FORMATS, open_file
from expunge.files.budget import check_memory, rows_within

every_file = pytest.mark.parametrize("name", MADE)


def test_every_format_is_tested():
    assert {file.removesuffix(".gz").rpartition(".")[2] for file, _ in MADE.values()} | {"tsv"} == {
        ending.strip(".") for ending in FORMATS
    }


@every_file
@pytest.mark.parametrize("start", [0, 7, 170, 999, 1000])
def test_blocks_from_anywhere(name, start, tmp_path):
    file, X = open_file(make(name, tmp_path)), vectors()
    assert (file.n, file.d) == (N, D)
    at = start
    for first, block in file.blocks(130, start):
        assert first == at
        assert len(block) <= 130
        assert block.dtype == file.dtype
        np.testing.assert_array_equal(block.astype(np.float32), X[at : at + len(block)])
        at += len(block)
    assert at == N


@every_file
def test_rows_by_number(name, tmp_path):
    file, X = open_file(make(name, tmp_path)), vectors()
    for index in ([999, 3, 3, 500, 4], [0], [], list(range(100, 400)), [0, 999]):
        found = file.take(np.array(index, dtype=int))
        np.testing.assert_array_equal(found.astype(np.float32), X[np.array(index, dtype=int)])


@every_file
def test_columns(name, tmp_path):
    file = open_file(make(name, tmp_path))
    expected = {"word": words(), "gender": genders(), "age": np.arange(N) % 90}
    assert "emb" not in file.columns
    for column in {*file.columns} & expected.keys():
        found = file.column(column)
        assert found.shape == (N,)
        np.testing.assert_array_equal(found, expected[column])
    if file.columns:
        with pytest.raises(ex.InputError, match=f"no column .*the nearest is '{file.columns[0]}'"):
            file.column(file.columns[0] + "x")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["npy", "npy by columns", "npz", "packed npz", "parquet"])
def test_types_stay(name, dtype, tmp_path):
    X = vectors(dtype=dtype)
    file = open_file(make(name, tmp_path, X))
    assert file.stored == dtype
    np.testing.assert_array_equal(file.take(np.arange(N)), X)


@given(
    st.integers(1, 60),
    st.integers(1, 5),
    st.integers(1, 70),
    st.integers(0, 60),
    st.sampled_from(sorted(MADE)),
)
@settings(deadline=None, max_examples=150)
def test_any_shape_and_any_block(tmp_path_factory, n, d, size, start, name):
    folder = tmp_path_factory.mktemp("file")
    X = vectors(n, d)
    path = make(name, folder, X)
    kwargs = {"vectors": "e*"} if name in ("csv", "parquet of columns") else {}
    file = open_file(path, **kwargs)
    parts = [block for _, block in file.blocks(size, min(start, n))]
    found = np.concatenate(parts) if parts else np.empty((0, d))
    np.testing.assert_array_equal(found.astype(np.float32), X[min(start, n) :])


def test_bfloat16_without_torch_is_what_torch_says(tmp_path):
    import torch
    from safetensors.torch import save_file

    T = torch.tensor(vectors()).to(torch.bfloat16)
    save_file({"x": T, "y": torch.arange(N)}, tmp_path / "half.safetensors")
    file = open_file(tmp_path / "half.safetensors")
    assert (file.stored, file.dtype, file.columns) == ("bfloat16", np.float32, ("y",))
    np.testing.assert_array_equal(file.take(np.arange(N)), T.float().numpy())


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=50))
@settings(deadline=None)
def test_bfloat16_is_rounded_as_torch_does(numbers):
    import torch

    from expunge.files.number_types import decoded, encoded

    values = np.array(numbers, np.float32)
    found = decoded(encoded(values, "bfloat16"), "bfloat16")
    np.testing.assert_array_equal(found, torch.tensor(values).bfloat16().float().numpy())


def test_words_with_spaces_and_odd_signs(tmp_path):
    path = tmp_path / "odd.txt"
    path.write_text("the 0.5 1\n. . . 2 -1\nat name@x.de 1e-3 4\n\xa0 5 6\n", encoding="utf-8")
    file = open_file(path)
    assert file.column("word").tolist() == ["the", ". . .", "at name@x.de", "\xa0"]
    np.testing.assert_array_equal(file.take(np.arange(4))[:, 0], np.float32([0.5, 2, 1e-3, 5]))


def test_csv_with_a_mark_windows_ends_and_empty_lines_at_the_end(tmp_path):
    path = tmp_path / "windows.csv"
    path.write_bytes(b'\xef\xbb\xbfname,x1,x2\r\n"a, b",1.5,2\r\nc,3,4.5\r\n\r\n\r\n')
    file = open_file(path)
    assert (file.n, file.columns) == (2, ("name",))
    np.testing.assert_array_equal(file.take(np.arange(2)), [[1.5, 2], [3, 4.5]])
    assert file.column("name").tolist() == ["a, b", "c"]


@pytest.mark.parametrize(
    ("text", "size"),
    [("512MB", 512 * 10**6), ("1GB", 10**9), ("8 MiB", 8 << 20), (4096, 4096), ("2k", 2000)],
)
def test_memory(text, size):
    assert check_memory(text) == size
    assert 1 <= rows_within(size, 64, 4) * 64 * 4 <= max(size, 256)


@pytest.mark.parametrize("text", ["", "much", "-1GB", 0, True, None, "1XB"])
def test_memory_that_is_none(text):
    with pytest.raises(ex.InputError, match="memory must be"):
        check_memory(text)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (["1", "2", "3"], "i"),
        (["1", "2.50", "2.5", "1e2", "100.0"], "f"),  # numbers may be written in several ways
        (["+1", "-1", "1"], "i"),
        (["01", "1", "2"], "U"),
        (["01", "1", "2.5"], "U"),
        (["12345678901234567890", "12345678901234567891"], "U"),
        (["9007199254740993", "9007199254740992", "0.5"], "U"),
        (["a", "1"], "U"),
    ],
)
@pytest.mark.parametrize("parts", [1, 2])
def test_codes_in_text_are_what_they_are_in_one_file_or_in_several(fields, kind, parts, tmp_path):
    """Codes that one number would stand for stay apart, also where each file has one of them."""
    for k, some in enumerate(np.array_split(np.array(fields), parts)):
        lines = "".join(f"0.5,{field}\n" for field in some)
        (tmp_path / f"{k}.csv").write_text("x,code\n" + lines)
    file = open_file(tmp_path if parts > 1 else tmp_path / "0.csv", vectors=["x"])
    found = file.column("code")
    assert found.dtype.kind == kind
    assert len(np.unique(found)) == len(set(fields)) - 2 * (kind == "f") + (fields[0] == "+1") * -1
