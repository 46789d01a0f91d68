"""What goes wrong is said once, with its place, and leaves everything as it was."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import MADE, D, N, make, vectors

import expunge as ex
from expunge.files import convert, open_file, rewrite


def read_all(path):
    for _ in open_file(path).blocks(170):
        pass


@given(st.sampled_from(sorted(MADE)), st.floats(0, 1, exclude_max=True))
@settings(deadline=None, max_examples=150)
def test_a_file_that_is_cut_anywhere(tmp_path_factory, name, share):
    """Of text, what is left may be a shorter text; everything else is noticed."""
    folder = tmp_path_factory.mktemp("cut")
    path = make(name, folder, vectors(200))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    target = folder / f"out-{path.name}"
    target.write_bytes(b"old")
    try:
        convert(path, target)
    except ex.InputError:
        assert target.read_bytes() == b"old"
    else:
        text = name in ("GloVe", "csv", "word2vec text")
        assert text or whole[len(path.read_bytes()) :] in (b"\n", b"\xff\xff\xff\xff\0\0\0\0")
        found = open_file(target).take(np.arange(open_file(target).n))
        if len(found) > 1:  # a cut within its first line leaves a text of other width
            whole_rows = found[:-1].astype(np.float32)
            np.testing.assert_array_equal(whole_rows, vectors(200)[: len(whole_rows)])
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("name", ["npy", "word2vec binary", "arrow stream", "safetensors"])
def test_a_cut_has_a_place(name, tmp_path):
    path = make(name, tmp_path)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ex.InputError, match=r"truncated: .*(byte|row) \d+"):
        read_all(path)


@pytest.mark.parametrize("name", sorted({*MADE} - {"npy by columns"}))
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_has_a_place(name, value, tmp_path):
    X = vectors()
    X[723, 2] = value
    path = make(name, tmp_path, X)
    erasure = ex.Erasure(np.eye(D)[:, :1], np.eye(D)[:1])
    (tmp_path / "old").mkdir()
    target = tmp_path / "old" / f"out-{path.name}"
    target.write_bytes(b"old")
    with pytest.raises(ex.InputError, match=r"NaN or infinity in a vector.*row 723, column 2"):
        rewrite(path, erasure, target, memory=4 * 97 * 8 * D)
    assert [p.name for p in target.parent.iterdir()] == [target.name]
    assert target.read_bytes() == b"old"


@pytest.mark.parametrize("fixed", [False, True])
def test_rows_that_are_missing_or_of_another_length(fixed, tmp_path):
    def written(rows):
        kind = pa.list_(pa.float32(), 2) if fixed else pa.list_(pa.float32())
        pq.write_table(pa.table({"x": pa.array(rows, kind)}), tmp_path / "t.parquet")
        return tmp_path / "t.parquet"

    rows = [[1.0, 2.0]] * 30
    with pytest.raises(ex.InputError, match=r"missing \(null\).*row 17 of"):
        read_all(written([*rows[:17], None, *rows]))
    with pytest.raises(ex.InputError, match=r"entry that is missing.*row 18 of"):
        read_all(written([*rows[:18], [1.0, None], *rows]))
    if not fixed:
        for odd in ([1.0], [], [1.0, 2.0, 3.0]):
            with pytest.raises(ex.InputError, match=f"has {len(odd)} numbers.*first one 2.*row 19"):
                read_all(written([*rows[:19], odd, *rows]))


def test_csv_lines(tmp_path):
    path = tmp_path / "t.csv"
    lines = ["name,x,y", *(f"n{i},{i}.5,2.5" for i in range(30))]
    for place, line, said in (
        (16, "n,oops,1.5", "Not a number in the column 'x'. Received 'oops' in line 17"),
        (16, "n,1.5", "has not 3 fields. Received 2 in line 17"),
        (16, "n,,1", "Received '' in line 17"),
        (20, '"a\nb",x,1', "in line 21"),
        (20, "", "Received 0 in line 21"),
    ):
        path.write_text("\n".join([*lines[:place], line, *lines[place + 1 :]]) + "\n")
        with pytest.raises(ex.InputError, match=said.replace(".", r"\.")):
            read_all(path)
    path.write_text('name,x,y\na,1.5,2\n5" disk,1,2\nb,2,3\nc,3,4\n')
    with pytest.raises(ex.InputError, match=r"quotation mark.*line"):
        read_all(path)
    path.write_text("name,x,x\na,1.5,2\n")
    with pytest.raises(ex.InputError, match="same name"):
        open_file(path)
    path.write_text("name,x\n")
    with pytest.raises(ex.InputError, match="no rows"):
        open_file(path)


def test_lines_of_words(tmp_path):
    path = tmp_path / "t.txt"
    lines = [f"w{i} 0.5 {i}" for i in range(30)]
    for line in ("w 1", "w 1 2x", "", "w 1  2"):
        path.write_text("\n".join([*lines[:16], line, *lines]) + "\n")
        with pytest.raises(ex.InputError, match="line 17 of"):
            read_all(path)
    path.write_text("40 2\n" + "\n".join(lines))
    with pytest.raises(ex.InputError, match=r"truncated.*40 words"):
        open_file(path)


@pytest.mark.parametrize("name", ["npy", "parquet", "arrow stream", "csv", "word2vec binary"])
def test_a_file_that_changes_meanwhile(name, tmp_path):
    path = make(name, tmp_path)
    rows = ex.open_rows(path, memory=4 * 97 * 8 * D)
    target = tmp_path / f"out-{path.name}"

    def meddle(done, n):
        if done > n // 2:
            os.utime(path, ns=(1, done))

    with pytest.raises(ex.InputError, match=r"changed while it was read.*rows|changed while"):
        rewrite(rows, None, target, memory=4 * 97 * 8 * D, progress=meddle)
    assert not target.exists()
    with pytest.raises(ex.InputError, match="changed while it was read"):
        rows.array()
    with pytest.raises(ex.InputError, match="changed while it was read"):
        rows.take(np.array([0]))


def test_the_target_is_the_source(tmp_path):
    (tmp_path / "folder").mkdir()
    path = make("npy", tmp_path / "folder")
    before = path.read_bytes()
    (tmp_path / "link.npy").symlink_to(path)
    (tmp_path / "hard.npy").hardlink_to(path)
    (tmp_path / "elsewhere").symlink_to(tmp_path / "folder")
    for target in (
        path,
        tmp_path / "link.npy",
        tmp_path / "hard.npy",
        tmp_path / "elsewhere" / path.name,
        tmp_path / "folder" / ".." / "folder" / path.name,
    ):
        with pytest.raises(ex.InputError, match="written over the one that is read"):
            convert(path, target, normalize=True)
    for target in (tmp_path / "folder", tmp_path):
        with pytest.raises(ex.InputError):
            convert(path, target, normalize=True)
    assert path.read_bytes() == before


def test_in_place(tmp_path):
    path = make("parquet", tmp_path)
    link = tmp_path / "link.parquet"
    link.symlink_to(path)
    erasure = ex.Erasure(np.eye(D)[:, :1], np.eye(D)[:1])
    rewrite(link, erasure, in_place=True)
    assert link.is_symlink()
    np.testing.assert_array_equal(open_file(path).take(np.arange(N)), erasure.transform(vectors()))
    with pytest.raises(ex.InputError, match="in_place=True replaces the source"):
        rewrite(path, erasure, tmp_path / "other.parquet", in_place=True)
    X = vectors()
    X[5, 5] = np.nan
    bad = make("parquet", tmp_path, X)
    before = bad.read_bytes()
    with pytest.raises(ex.InputError, match="row 5, column 5"):
        rewrite(bad, erasure, in_place=True)
    assert bad.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.parquet", "rows.parquet"]


@pytest.mark.parametrize("name", ["npy", "npz", "parquet", "arrow file", "safetensors", "csv"])
def test_a_full_disk(name, tmp_path):
    """A limit on the size of files stands for it; the error is the system's, with the row."""
    path = make(name, tmp_path, vectors(20_000, 16))
    target = tmp_path / f"out-{path.name}"
    target.write_bytes(b"old")
    code = f"""
        import resource
        from expunge.files import convert
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        try:
            convert({str(path)!r}, {str(target)!r}, memory="2MB")
        except OSError as error:
            print(type(error).__name__, error)
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "of 20000; nothing was replaced" in done.stdout, done.stderr
    assert done.stderr == ""
    assert target.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2


def test_too_large_for_the_type(tmp_path):
    np.save(tmp_path / "large.npy", np.full((10, 2), 1e6, np.float32))
    with pytest.raises(ex.InputError, match=r"exceeds what float16 can hold.*row 0, column 0"):
        convert(tmp_path / "large.npy", tmp_path / "half.npy", dtype="float16")
    assert not (tmp_path / "half.npy").exists()


@given(
    st.sampled_from(sorted(MADE)),
    st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 255)), min_size=1, max_size=8),
)
@settings(deadline=None, max_examples=200)
def test_damaged_bytes_are_refused_or_read(tmp_path_factory, name, damage):
    """Nothing but these errors, and never the end of the process."""
    folder = tmp_path_factory.mktemp("damaged")
    path = make(name, folder, vectors(60))
    content = bytearray(path.read_bytes())
    for at, value in damage:
        content[at % len(content)] = value
    path.write_bytes(content)
    try:
        file = open_file(path)
        for column in file.columns:
            file.column(column)
        convert(file, folder / f"out-{path.name}", memory=3000)
    except (ex.InputError, OSError):
        assert [p.name for p in folder.iterdir()] == [path.name]


def test_without_pyarrow(tmp_path, monkeypatch):
    paths = [make(name, tmp_path) for name in ("parquet", "arrow file")]
    np.save(tmp_path / "rows.npy", vectors())
    for module in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for path in paths:
        with pytest.raises(ex.MissingPackage, match=r"pip install 'expunge\[parquet\]'"):
            open_file(path)
    with pytest.raises(ex.MissingPackage):
        convert(tmp_path / "rows.npy", tmp_path / "rows.parquet")
    read_all(tmp_path / "rows.npy")


def test_not_what_the_name_says(tmp_path):
    for ending in (".npy", ".npz", ".parquet", ".arrow", ".safetensors", ".bin", ".csv", ".txt"):
        for content in (b"", b"nothing of the kind", b"\x00" * 64, b"\xff" * 64):
            path = tmp_path / f"bad{ending}"
            path.write_bytes(content)
            with pytest.raises(ex.InputError):
                read_all(path)


def test_names_in_the_footer_of_parquet_that_are_no_text(tmp_path):
    """Each occurrence of a name by itself: some are read only when the file is written anew."""
    path = make("parquet", tmp_path, vectors(60))
    whole, refused = path.read_bytes(), 0
    for name in (b"emb", b"word", b"age"):
        at = whole.find(name, len(whole) - 8000)
        while at >= 0:
            path.write_bytes(whole[:at] + b"\x80" + whole[at + 1 :])
            try:
                convert(open_file(path), tmp_path / "out.parquet")
            except (ex.InputError, OSError):
                refused += 1
            at = whole.find(name, at + 1)
    assert refused
