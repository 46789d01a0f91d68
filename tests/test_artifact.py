"""Files: bit-equal round trips, equal bytes, atomic writes, and a reason for every refusal."""

import json
import os
import stat
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from expunge import RLACE, BadArtifact, ConditionalErasure, Erasure, InputError, artifact
from expunge.fingerprint import Fingerprint

DATA = Path(__file__).parent / "data"
STORED = DATA / "erasure_format_1.safetensors"


def some_erasure(**points):
    rng = np.random.default_rng(0)
    meta = {"method": "LEACE", "concept": {"labels": ["f", "é"]}, "n": 3}
    return Erasure(rng.normal(size=(5, 2)), rng.normal(size=(2, 5)), **points, meta=meta)


def write_safetensors(path, header, n_bytes=0):
    """A safetensors file by hand: length, JSON header, zeros."""
    raw = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(n_bytes))


def with_header(path, text, tensors=None):
    """A well-formed file whose entry for expunge is `text`."""
    tensors = {"left": np.eye(3)[:, :1], "right": np.eye(3)[:1]} if tensors is None else tensors
    tensors = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    path.write_bytes(safetensors.numpy.save(tensors, {"expunge": text}))
    return path


def header(**changes):
    return json.dumps({"format": 1, "kind": "erasure", "meta": {}, **changes})


@pytest.mark.parametrize(
    "points",
    [{}, {"center": np.arange(5.0)}, {"offset": np.arange(5.0)}, {"center": [1e-300] * 5}],
)
def test_round_trip_is_bit_equal(tmp_path, points):
    e = some_erasure(**points)
    e.save(tmp_path / "e.safetensors")
    back = Erasure.load(str(tmp_path / "e.safetensors"))
    for name in ("left", "right", "center", "offset"):
        found, expected = getattr(back, name), getattr(e, name)
        assert (found is None) == (expected is None)
        assert found is None or found.tobytes() == expected.tobytes()
    assert back.meta == e.meta


def test_rank_zero_round_trip(tmp_path):
    Erasure(np.zeros((4, 0)), np.zeros((0, 4))).save(tmp_path / "e")
    back = Erasure.load(tmp_path / "e")
    assert (back.rank, back.n_features) == (0, 4)


def test_equal_erasures_give_equal_bytes(tmp_path):
    points = {"center": np.ones(5), "offset": np.zeros(5)}
    contents = set()
    for k, layout in enumerate((np.ascontiguousarray, np.asfortranarray, np.ascontiguousarray)):
        e = some_erasure(**points)
        meta = dict(sorted(e.meta.items(), reverse=bool(k)))
        Erasure(layout(e.left), layout(e.right), **points, meta=meta).save(tmp_path / f"{k}")
        contents.add((tmp_path / f"{k}").read_bytes())
    assert len(contents) == 1
    some_erasure().save(tmp_path / "other")
    assert (tmp_path / "other").read_bytes() not in contents


def test_the_date_is_recorded_only_if_given(tmp_path):
    e = some_erasure()
    e.save(tmp_path / "e", date="2024-05-01")
    assert Erasure.load(tmp_path / "e").meta["date"] == "2024-05-01"
    assert "date" not in e.meta


def test_the_stored_file_of_format_1_is_still_read():
    e = Erasure.load(STORED)
    np.testing.assert_array_equal(e.left, [[1.0], [0.5], [0.0]])
    np.testing.assert_array_equal(e.right, [[0.8, 0.4, 0.25]])
    np.testing.assert_array_equal(e.center, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(e.offset, [0.0, 0.0, -1.0])
    assert e.meta == {"method": "LEACE", "concept": {"kind": "classes", "labels": ["f", "m"]}}
    np.testing.assert_allclose(e([[2.0, 2.0, 7.0]]), [[0.2, 1.1, 6.0]])


def test_the_stored_conditional_erasure_of_format_1_is_still_read():
    e = ConditionalErasure.load(DATA / "conditional_erasure_format_1.safetensors")
    np.testing.assert_array_equal(e.shift, [[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0]])
    assert (e.kind, e.labels, e.strength) == (
        "labels",
        ("sex=f", "sex=m", "city=Bern", "city=Rome"),
        0.5,
    )
    found = e.transform([[1.0, 2.0], [3.0, 2.0]], {"sex": ["f", "m"], "city": ["Rome", "Rome"]})
    # half of the shift (1, -1) of z - mean z = (3/4, -3/4) and (-1/4, 1/4), and of (2, 1) of
    # (-1/2, 1/2)
    np.testing.assert_allclose(found, [[1 - 0.75, 2.25], [3 + 0.25, 2.25]])


@pytest.mark.parametrize("name", ["replace", "fsync", "chmod"])
def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, name):
    path = tmp_path / "e.safetensors"
    some_erasure().save(path)
    before = path.read_bytes()

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, name, fail)
    with pytest.raises(OSError, match="disk full"):
        some_erasure(center=np.ones(5)).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_a_save_replaces_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "e.safetensors"
    path.write_bytes(b"old")
    some_erasure().save(path)
    assert Erasure.load(path).rank == 2
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.skipif(os.name != "posix", reason="permission bits are a POSIX matter")
def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        some_erasure().save(tmp_path / "e")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "e").stat().st_mode) == 0o640


def test_meta_that_json_cannot_hold_is_refused_before_writing(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        artifact.write(tmp_path / "e", {}, {"kind": "erasure", "meta": {"x": float("nan")}})
    with pytest.raises(InputError, match="JSON"):
        Erasure(np.eye(2), np.eye(2), meta={"x": [1.0, float("nan")]}).save(tmp_path / "e")
    with pytest.raises(InputError, match="JSON"):
        some_erasure().save(tmp_path / "e", date=object())
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("value", [float("inf"), np.float64("inf"), np.float32("inf")])
def test_an_infinite_parameter_is_recorded_as_text(tmp_path, value):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    RLACE(tol=value).fit(X, y).erasure_.save(tmp_path / "e")
    assert Erasure.load(tmp_path / "e").meta["parameters"]["tol"] == "inf"


# -- refusals ------------------------------------------------------------------------------------


def assert_bad(path, match):
    with pytest.raises(BadArtifact, match=match) as caught:
        Erasure.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated(tmp_path, share):
    some_erasure().save(tmp_path / "e")
    whole = (tmp_path / "e").read_bytes()
    (tmp_path / "e").write_bytes(whole[: int(share * len(whole))])
    assert_bad(tmp_path / "e", "not a readable safetensors file")


@pytest.mark.parametrize("seed", range(5))
def test_random_bytes(tmp_path, seed):
    (tmp_path / "e").write_bytes(np.random.default_rng(seed).bytes(500))
    assert_bad(tmp_path / "e", "not a readable safetensors file")


def test_a_folder(tmp_path):
    assert_bad(tmp_path, "not a readable safetensors file")


def test_someone_elses_file(tmp_path):
    safetensors.numpy.save_file({"left": np.eye(2), "right": np.eye(2)}, tmp_path / "e")
    assert_bad(tmp_path / "e", "not one written by expunge")
    safetensors.numpy.save_file({"left": np.eye(2)}, tmp_path / "f", {"format": "pt"})
    assert_bad(tmp_path / "f", "not one written by expunge")


@pytest.mark.parametrize("number", [3, 0, "1", 1.0, True, None, [1], {}])
def test_an_unknown_format_number(tmp_path, number):
    assert_bad(with_header(tmp_path / "e", header(format=number)), "this version .* reads")


def test_a_newer_format_says_who_wrote_it(tmp_path):
    text = header(format=99, writer="7.1", kind="unheard of", meta=None)
    assert_bad(with_header(tmp_path / "e", text), "format 99, written by version 7.1.*Upgrade")


@pytest.mark.parametrize("kind", ["conditional", ["erasure"], None])
def test_another_kind(tmp_path, kind):
    assert_bad(with_header(tmp_path / "e", header(kind=kind)), "not a 'erasure'")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "null", "{}", '{"format": 1}', '{"kind": "erasure"}', "[" * 99999]
)
def test_a_damaged_header(tmp_path, text):
    assert_bad(with_header(tmp_path / "e", text), "header is damaged")


@pytest.mark.parametrize("meta", [None, [], "text"])
def test_a_header_without_meta(tmp_path, meta):
    assert_bad(with_header(tmp_path / "e", header(meta=meta)), "no meta data")


def test_missing_arrays(tmp_path):
    path = with_header(tmp_path / "e", header(), {"left": np.eye(2), "center": np.ones(2)})
    assert_bad(path, r"\['right'\] are missing")


@pytest.mark.parametrize(
    "tensors",
    [
        {"left": np.eye(3), "right": np.eye(2)},
        {"left": np.eye(3)[:, :1], "right": np.eye(3)[:2]},
        {"left": np.ones(3), "right": np.ones(3)},
        {"left": np.eye(3), "right": np.eye(3), "center": np.ones(2)},
        {"left": np.eye(3), "right": np.eye(3), "offset": np.ones((3, 1))},
        {"left": np.eye(3), "right": np.full((3, 3), np.nan)},
        {"left": np.eye(3), "right": np.eye(3), "center": np.array([0, np.inf, 0])},
    ],
)
def test_inconsistent_arrays(tmp_path, tensors):
    assert_bad(with_header(tmp_path / "e", header(), tensors), "must")


@pytest.mark.parametrize(("dtype", "size"), [("F32", 4), ("I64", 8), ("BF16", 2), ("F8_E4M3", 1)])
def test_arrays_of_another_type(tmp_path, dtype, size):
    entries = {"__metadata__": {"expunge": header()}}
    for k, (name, shape) in enumerate({"left": [2, 1], "right": [1, 2]}.items()):
        offsets = [2 * size * k, 2 * size * (k + 1)]
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
    write_safetensors(tmp_path / "e", entries, 4 * size)
    assert_bad(tmp_path / "e", f"'left' has type {dtype}")


def test_a_missing_file_is_no_bad_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Erasure.load(tmp_path / "nowhere")


# -- damage ----------------------------------------------------------------------------------------


def conditional():
    return ConditionalErasure(np.ones((2, 2)), [0.5, 0.5], [0.0, 1.0], ["f", "m"], "classes")


@pytest.mark.parametrize("make", [some_erasure, conditional], ids=["erasure", "conditional"])
def test_every_flipped_bit_is_noticed(tmp_path, make):
    e, path = make(), tmp_path / "e"
    e.save(path)
    type(e).load(path)
    whole = path.read_bytes()
    for at in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[at // 8] ^= 1 << at % 8
        path.write_bytes(damaged)
        with pytest.raises(BadArtifact):
            type(e).load(path)


def test_a_file_of_format_2_without_its_checksum(tmp_path):
    assert_bad(with_header(tmp_path / "e", header(format=2)), "checksum")
    for other in ("", "0" * 64, 7, None, ["a"]):
        assert_bad(with_header(tmp_path / "e", header(format=2, checksum=other)), "checksum")
        assert_bad(with_header(tmp_path / "e", header(format=1, checksum=other)), "checksum")


def test_a_checksum_in_the_meta_data_confuses_nobody(tmp_path):
    meta = {"checksum": "0" * 64, "": {"checksum": "0" * 64}}
    Erasure(np.eye(2), np.eye(2), meta=meta).save(tmp_path / "e")
    assert Erasure.load(tmp_path / "e").meta == meta
    own = json.loads(safetensors.safe_open(tmp_path / "e", "np").metadata()["expunge"])["checksum"]
    Erasure(np.eye(2), np.eye(2), meta={"of another": own}).save(tmp_path / "f")
    assert Erasure.load(tmp_path / "f").meta == {"of another": own}


@pytest.mark.parametrize("name", ["more", "Left", "left.1"])
def test_arrays_that_do_not_belong_there_are_not_read(tmp_path, name):
    tensors = {"left": np.eye(2), "right": np.eye(2), name: np.ones(3)}
    assert_bad(with_header(tmp_path / "e", header(), tensors), "do not belong")


@pytest.mark.skipif(not hasattr(os, "truncate"), reason="no files with holes here")
@pytest.mark.parametrize("name", ["left", "unheard of"])
def test_a_small_file_that_claims_to_be_large_takes_no_memory(tmp_path, name):
    """A header of a few hundred bytes, and a hole of a gigabyte."""
    size = 1 << 30
    entries = {
        "__metadata__": {"expunge": header()},
        name: {"dtype": "F64", "shape": [size // 8], "data_offsets": [0, size]},
    }
    write_safetensors(tmp_path / "e", entries)
    assert_bad(tmp_path / "e", "not a readable safetensors file")  # shorter than it says
    os.truncate(tmp_path / "e", (tmp_path / "e").stat().st_size + size)
    tracemalloc.start()
    assert_bad(tmp_path / "e", "missing")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 22


def nested(depth):
    meta = {}
    for _ in range(depth):
        meta = {"a": [meta]}
    return meta


@pytest.mark.parametrize("depth", [60, 300, 480, 5000])
def test_meta_data_nested_too_deep(tmp_path, depth):
    text = '{"a": [' * depth + "{}" + "]}" * depth
    path = with_header(tmp_path / "e", f'{{"format": 1, "kind": "erasure", "meta": {text}}}')
    assert_bad(path, "damaged")
    if depth < 400:
        with pytest.raises(InputError, match="deeper"):
            Erasure(np.eye(2), np.eye(2), meta=nested(depth))


def test_many_erasures_one_after_the_other_can_be_saved(tmp_path):
    e = some_erasure()
    for _ in range(150):
        e = e.then(Erasure(np.zeros((5, 0)), np.zeros((0, 5)), meta={"method": "nothing"}))
    e.save(tmp_path / "e")
    assert len(Erasure.load(tmp_path / "e").meta["steps"]) == 151


FINGERPRINT = Fingerprint.of(np.arange(12.0).reshape(6, 2)).to_meta()
SKETCH = FINGERPRINT["sketch"]
DAMAGED = [
    {"fingerprint": bad}
    for bad in (
        None,
        "text",
        [],
        {},
        {**FINGERPRINT, "n": "6"},
        {**FINGERPRINT, "n": True},
        {**FINGERPRINT, "n": -1},
        {**FINGERPRINT, "n": 10**30},
        {**FINGERPRINT, "n": 7},
        {**FINGERPRINT, "n": 2},
        {**FINGERPRINT, "digest": "0" * 16},
        {**FINGERPRINT, "digest": None},
        {**FINGERPRINT, "sketch": None},
        {**FINGERPRINT, "sketch": "é"},
        {**FINGERPRINT, "sketch": SKETCH[:-4]},
        {**FINGERPRINT, "sketch": SKETCH[4:]},
        {**FINGERPRINT, "sketch": SKETCH.swapcase()},
        {**FINGERPRINT, "sketch": "!" + SKETCH},
    )
] + [{"concept": "sex"}, {"concept": [1]}, {"steps": None}, {"steps": "abc"}, {"steps": [1]}]


@pytest.mark.parametrize("meta", DAMAGED, ids=str)
@pytest.mark.parametrize("inside", [False, True])
def test_damaged_meta_data(tmp_path, meta, inside):
    meta = {"steps": [{}, meta]} if inside else meta
    assert_bad(with_header(tmp_path / "e", header(meta=meta)), "damaged")
    good = {"fingerprint": FINGERPRINT, "concept": None, "steps": [{"concept": {}}]}
    assert Erasure.load(with_header(tmp_path / "e", header(meta=good))).meta == good


@pytest.mark.parametrize(
    "path", [None, 3, "", "a\0b", b"", ["a"], object()], ids=lambda p: repr(p)[:8]
)
def test_what_is_no_path(path):
    for call in (Erasure.load, ConditionalErasure.load, some_erasure().save, conditional().save):
        with pytest.raises(InputError):
            call(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders here")
def test_a_pipe_is_neither_read_nor_replaced(tmp_path):
    os.mkfifo(tmp_path / "e")
    (tmp_path / "link").symlink_to("e")
    for name in ("e", "link"):
        assert_bad(tmp_path / name, "pipe")
        with pytest.raises(InputError, match="pipe"):
            some_erasure().save(tmp_path / name)
    assert stat.S_ISFIFO((tmp_path / "e").stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["e", "link"]
