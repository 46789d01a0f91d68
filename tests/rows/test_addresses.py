"""Rows at addresses: a store in memory, and servers of S3 and HTTP."""

import functools
import http.server
import threading
import time

import dask.array as da
import dask.dataframe as dd
import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.registry import known_implementations

import expunge as ex
from expunge.addresses import Address, new_file, where_of
from expunge.errors import InputError, MissingPackage
from expunge.files.address_folders import still_wanted
from planted import plant

N, D, SHARDS = 600, 8, 6


@pytest.fixture
def memory():
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    yield "memory://store"
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]


@pytest.fixture
def s3(monkeypatch):
    """A real server; its packages and those of other tests cannot all be installed together."""
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    port = server.get_host_and_port()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    fs = fsspec.filesystem("s3", skip_instance_cache=True)
    type(fs).clear_instance_cache()
    name = f"store-{port}"
    fs.mkdir(name)
    yield f"s3://{name}"
    server.stop()


@pytest.fixture(params=["memory", "s3"])
def store(request):
    return Address(request.getfixturevalue(request.param))


def people(X, y):
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    return pa.table({"y": y, "name": [f"row {i}" for i in range(len(X))], "x": vectors})


def fill(folder, data, shards=SHARDS, X=None):
    table = people(data.X if X is None else X, np.asarray(data.y))
    size = -(-len(table) // shards)
    if isinstance(folder, Address):
        fs, path = folder.reach()
        fs.makedirs(path, exist_ok=True)
    else:
        folder.mkdir()
    for at in range(shards):
        with new_file(folder / f"{at}.parquet") as stream:
            pq.write_table(table.slice(at * size, size), stream)
    return folder


def content(folder):
    """Bytes of all files of a folder, but those that say that it is whole."""
    found = {}
    for path in folder.iterdir():
        with path.open("rb") as stream:
            found[path.name] = stream.read()
    return {name: some for name, some in found.items() if name != "_SUCCESS"}


def names(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_fit_an_apply_and_an_audit_are_those_of_local_files(store, tmp_path):
    data = plant("classes", n=N)
    here, there = fill(tmp_path / "people", data), fill(store / "people", data)
    expected = ex.LEACE().fit(ex.open_rows(here), concept="y")
    for rows in (ex.open_rows(str(there)), ex.cluster_rows(str(there))):
        found = ex.LEACE().fit(rows, concept="y")
        np.testing.assert_allclose(
            found.erasure_.matrix(), expected.erasure_.matrix(), rtol=0, atol=1e-12
        )
        assert ex.certify(expected.erasure_, rows, "y").erased
    expected.transform(ex.open_rows(here), out=tmp_path / "clean")
    for name, opened in (("by blocks", ex.open_rows), ("by dask", ex.cluster_rows)):
        out = expected.transform(opened(there), out=str(store / name))
        assert out.n_samples == N
        assert content(store / name) == content(tmp_path / "clean")
        assert "_SUCCESS" in names(store / name)
    audits = [
        ex.audit(expected.erasure_, None, None, opened(place), "y", probes="linear")
        for opened, place in ((ex.open_rows, here), (ex.cluster_rows, there))
    ]
    assert audits[0].to_dict() == audits[1].to_dict()


def test_from_here_to_there_and_back(store, tmp_path):
    data = plant("binary", n=N)
    erasure = ex.LEACE().fit(data.X, data.y).erasure_
    here = fill(tmp_path / "people", data)
    (here / "README.md").write_text("what these are")
    erasure.transform(ex.cluster_rows(here), out=str(store / "clean"))
    assert names(store / "clean") == [*(f"{k}.parquet" for k in range(6)), "README.md", "_SUCCESS"]
    ex.Erasure.identity(D).transform(ex.cluster_rows(str(store / "clean")), out=tmp_path / "back")
    np.testing.assert_allclose(
        ex.open_rows(tmp_path / "back").array(), erasure.transform(data.X), atol=1e-6
    )


def test_collections_of_dask_become_parquet_there(store):
    data = plant("binary", n=N)
    erasure = ex.LEACE().fit(data.X, data.y).erasure_
    expected = erasure.transform(data.X)
    rows = erasure.transform(da.from_array(data.X, chunks=(200, D)), out=str(store / "array"))
    np.testing.assert_allclose(rows.take(np.arange(N)).array(), expected, atol=1e-12)
    frame = dd.from_pandas(pd.DataFrame(data.X, columns=list("abcdefgh")), npartitions=3)
    rows = erasure.transform(frame, out=str(store / "frame"))
    np.testing.assert_allclose(rows.take(np.arange(N)).array(), expected, atol=1e-12)


def gone(place):
    """Whether nothing is there, once those have ended who were at work when another failed."""
    for _ in range(100):
        if not place.exists():
            return True
        time.sleep(0.05)
    return False


# -- nothing that looks complete -----------------------------------------------------------------


def test_nothing_is_written_over(store, tmp_path):
    data = plant("binary", n=N)
    erasure = ex.LEACE().fit(data.X, data.y).erasure_
    there = fill(store / "people", data)
    one = fill(store / "one", data, shards=1) / "0.parquet"
    before = content(there)
    for rows in (ex.cluster_rows(there), ex.open_rows(there)):
        for target in (store / "one", there, there / "clean", store):
            with pytest.raises(InputError, match=r"nothing is written over|over the one that is"):
                erasure.transform(rows, out=str(target))
    for rows in (ex.cluster_rows(there / "0.parquet"), ex.open_rows(there / "0.parquet")):
        with pytest.raises(InputError, match="nothing is written over"):
            erasure.transform(rows, out=str(one))
    assert content(there) == before


def test_nan_leaves_nothing(store):
    data = plant("binary", n=N)
    erasure = ex.LEACE().fit(data.X, data.y).erasure_
    X = data.X.copy()
    X[317, 3] = np.nan
    there = fill(store / "people", data, X=X)
    for rows in (ex.cluster_rows(there), ex.open_rows(there)):
        with pytest.raises(InputError, match=r"row 3?17, column 3 of \w+://store[-\d]*/people"):
            erasure.transform(rows, out=str(store / "clean"))
        assert gone(store / "clean")
    with pytest.raises(InputError, match=r"row 317, column 3, in partition 3"):
        ex.LEACE().fit(ex.cluster_rows(there), concept="y")
    with pytest.raises(InputError, match="row 17, column 3"):
        erasure.transform(ex.cluster_rows(there / "3.parquet"), out=str(store / "one.parquet"))
    assert gone(store / "one.parquet")


def test_an_interrupted_run_is_refused_by_readers_and_gone_on_with(store, tmp_path, monkeypatch):
    data = plant("binary", n=N)
    erasure = ex.LEACE().fit(data.X, data.y).erasure_
    rows = ex.cluster_rows(fill(store / "people", data))
    rows.write(erasure, store / "calm")

    def lost(*_):
        raise OSError("the cluster went away")

    with monkeypatch.context() as patch:
        patch.setattr("expunge.files.folder_job.FolderJob.copy_others", lost)
        with pytest.raises(OSError, match="went away"):
            rows.write(erasure, store / "clean", resume=True)
    assert "_unfinished.json" in names(store / "clean")
    assert "_SUCCESS" not in names(store / "clean")
    with pytest.raises(InputError, match="not whole"):
        ex.open_rows(str(store / "clean"))
    with pytest.raises(InputError, match="unfinished run"):
        rows.write(erasure, store / "clean")
    other = ex.SAL().fit(data.X, data.y).erasure_
    with pytest.raises(InputError, match="not of the same work"):
        rows.write(other, store / "clean", resume=True)
    with new_file(store / "clean" / "2.parquet") as stream:
        stream.write(b"PAR1 half of it")
    (store / "clean" / "4.parquet").unlink()
    rows.write(erasure, store / "clean", resume=True)
    assert content(store / "clean") == content(store / "calm")
    assert names(store / "clean") == names(store / "calm")


def test_a_shard_that_comes_too_late_takes_itself_away(store):
    marker, late = store / "clean" / "_unfinished.json", store / "clean" / "3.parquet"
    with new_file(marker) as stream:
        stream.write(b"{}")
    written = []

    def write():
        with still_wanted(late), new_file(late) as stream:
            stream.write(b"...")
            written.append(late)
            marker.unlink()  # by who gave up

    with pytest.raises(OSError, match="given up"):
        write()
    assert written
    assert not late.exists()
    with pytest.raises(OSError, match="given up"):
        write()
    assert len(written) == 1


def test_half_a_file_is_no_file(store):
    with pytest.raises(TypeError), new_file(store / "x.parquet") as stream:
        stream.writelines([b"half", None])
    assert not (store / "x.parquet").exists()


# -- other addresses -----------------------------------------------------------------------------


def test_file_addresses_are_paths(tmp_path):
    assert where_of(f"file://{tmp_path}/x") == tmp_path / "x"
    data = plant("binary", n=N)
    fill(tmp_path / "people", data)
    eraser = ex.LEACE().fit(ex.open_rows(f"file://{tmp_path}/people"), concept="y")
    eraser.transform(ex.cluster_rows(f"file://{tmp_path}/people"), out=f"file://{tmp_path}/clean")
    assert names(tmp_path / "clean") == [f"{k}.parquet" for k in range(SHARDS)]


def test_chains_are_read(memory, tmp_path):
    data = plant("binary", n=N)
    there = fill(Address(memory) / "people", data)
    rows = ex.open_rows(f"simplecache::{there}")
    np.testing.assert_array_equal(rows.array(), data.X)
    with pytest.raises(InputError, match="plain address"):
        ex.LEACE().fit(rows, concept="y").transform(rows, out=f"simplecache::{memory}/clean")


class Ranged(http.server.SimpleHTTPRequestHandler):
    """Gives parts of files, as most servers do."""

    def do_GET(self):
        asked = self.headers.get("Range")
        if asked is None:
            return super().do_GET()
        with open(self.translate_path(self.path), "rb") as stream:
            whole = stream.read()
        first, last = (int(part) for part in asked.removeprefix("bytes=").split("-"))
        part = whole[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(whole)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)
        return None

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("handler", [Ranged, http.server.SimpleHTTPRequestHandler])
def test_http(handler, tmp_path, monkeypatch):
    pytest.importorskip("aiohttp")
    data = plant("binary", n=N)
    fill(tmp_path / "people", data)
    monkeypatch.setattr(handler, "log_message", lambda *_: None)
    served = functools.partial(handler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), served) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}/people/2.parquet"
        try:
            np.testing.assert_array_equal(ex.open_rows(url).array(), data.X[200:300])
            signed = ex.open_rows(f"{url}?who=ann&sig=hush")  # what is not shown is still sent
            np.testing.assert_array_equal(signed.array(), data.X[200:300])
            with pytest.raises(InputError, match="no such file") as raised:
                ex.open_rows(f"{url.replace('2.parquet', '99.parquet')}?sig=hush")
            assert "99.parquet" in str(raised.value)
            assert "hush" not in str(raised.value)
        finally:
            server.shutdown()


def test_what_is_said_of_an_address_that_leads_nowhere(memory, monkeypatch):
    with pytest.raises(InputError, match=r"no such addresses.*s4://x"):
        ex.open_rows("s4://x/y.parquet")
    with pytest.raises(InputError, match=r"no such file.*memory://store/x"):
        ex.cluster_rows(f"{memory}/x")
    with new_file(Address(memory) / "rows.npy") as stream:
        np.save(stream, np.eye(3))
    with pytest.raises(InputError, match="only parquet"):
        ex.open_rows(f"{memory}/rows.npy")
    known = {"class": "no_such_driver.Files", "err": "Install no_such_driver"}
    monkeypatch.setitem(known_implementations, "nowhere", known)
    with pytest.raises(MissingPackage, match="pip install no_such_driver"):
        ex.open_rows("nowhere://x/y.parquet")
    near = fill(Address(memory) / "people", plant("binary", n=N))
    with pytest.raises(InputError, match=r"the nearest is 'people'"):
        ex.open_rows(str(near.with_name("poeple")))


def test_an_address_says_what_went_wrong_there(memory, monkeypatch):
    fs = type(fsspec.filesystem("memory"))

    def fails(self, *_, **__):
        raise RuntimeError("no credentials")

    monkeypatch.setattr(fs, "info", fails)
    with pytest.raises(OSError, match=r"memory://store/x cannot be reached.*no credentials"):
        ex.open_rows(f"{memory}/x")


@pytest.mark.parametrize(
    ("whole", "shown"),
    [
        ("sftp://ann:hush@host:22/people", "sftp://ann:***@host:22/people"),
        ("simplecache::ftp://ann:hush@host/x", "simplecache::ftp://ann:***@host/x"),
        ("https://host/x.parquet?sig=hush", "https://host/x.parquet?..."),
        ("filecache::https://ann:hush@host/x?sig=hu:sh", "filecache::https://ann:***@host/x?..."),
        ("s3://bucket/at@noon/x:y.parquet", "s3://bucket/at@noon/x:y.parquet"),
    ],
)
def test_passwords_and_signatures_are_not_shown(whole, shown):
    address = Address(whole)
    assert str(address) == shown
    assert repr(address) == f"Address({shown!r})"
    assert address.whole == whole
    assert (address.parent / address.name).whole.split("?")[0] == whole.split("?")[0]


def test_a_driver_that_repeats_a_password_is_not_quoted(memory, monkeypatch):
    secret = "memory://ann:hush@store/x"

    def fails(self, *_, **__):
        raise RuntimeError(f"nobody answers at {secret}")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "info", fails)
    with pytest.raises(OSError, match="nobody answers") as raised:
        ex.open_rows(secret)
    assert "hush" not in str(raised.value)
