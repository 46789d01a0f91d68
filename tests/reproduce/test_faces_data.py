"""Faces from every kind of data: the embedded set, an .npz file, a CelebA folder."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from expunge.data import load_orl_faces
from expunge.errors import InputError
from expunge.reproduce.faces.celeba import read_celeba
from expunge.reproduce.faces.grey_images import grey_pixels
from expunge.reproduce.faces.labelled_faces import load, read_npz, truth
from expunge.reproduce.runner.declaration import RunSettings

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def orl():
    return load_orl_faces()


def test_the_embedded_faces_are_ten_of_each_of_forty_people(orl):
    assert orl.images.shape == (400, 50, 50)
    assert orl.images.dtype == np.uint8
    assert np.array_equal(np.bincount(orl.person_id)[1:], np.full(40, 10))
    assert len(orl) == 400
    assert orl.glasses.sum() == 119
    # a face resembles the other faces of its person more than those of anybody else
    X = orl.images.reshape(400, -1).astype(float)
    X -= X.mean(axis=1, keepdims=True)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    nearest = (X @ X.T - 2 * np.eye(400)).argmax(axis=1)
    assert np.mean(orl.person_id[nearest] == orl.person_id) > 0.95


def test_the_build_script_mends_images_that_were_stored_as_text(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    script = runpy.run_path(str(ROOT / "scripts" / "build_orl_faces.py"))
    x, y = np.meshgrid(np.arange(92), np.arange(112))
    image = (8 + (x + y) // 8).astype(np.uint8)  # smooth, with greys of 10 and 13
    image[40, 50:52] = 13, 10
    plain = b"P5\n92 112\n255\n" + image.tobytes()
    as_text = plain.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    assert np.array_equal(script["grey"](plain), image)
    assert len(as_text) != len(plain)
    assert np.array_equal(script["grey"](as_text), image)
    halves = np.repeat(np.repeat(image[:100, :50], 1, axis=0), 2, axis=1)
    assert np.abs(script["shrunk"](halves) - halves.reshape(50, 2, 50, 2).mean((1, 3))).max() <= 0.5
    steps = script["steps"](image[None, :50, :50])
    assert np.array_equal(np.cumsum(np.cumsum(steps, 2, np.uint8), 1, np.uint8)[0], image[:50, :50])


def test_images_of_any_size_become_the_means_of_their_areas():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (3, 100, 150), dtype=np.uint8)
    expected = images.reshape(3, 50, 2, 50, 3).mean(axis=(2, 4))
    found = grey_pixels(images).reshape(3, 50, 50)
    assert np.abs(found - expected).max() <= 1
    same = images[:, :50, :50]
    assert np.array_equal(grey_pixels(same), same.reshape(3, 2500))
    assert np.array_equal(grey_pixels(same / 255), same.reshape(3, 2500))
    assert np.array_equal(grey_pixels(same.reshape(3, -1).astype(int)), same.reshape(3, 2500))
    colours = np.stack([same] * 3, axis=3)
    assert np.abs(grey_pixels(colours).astype(int) - same.reshape(3, 2500)).max() <= 1


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 7)), "shape"),
        (np.zeros((2, 50, 50, 4)), "shape"),
        (np.zeros((0, 50, 50)), "shape"),
        (np.full((2, 50, 50), 300.0), "Grey values"),
        (np.full((2, 50, 50), np.nan), "finite"),
        (np.array([["a"]]), "finite"),
    ],
)
def test_bad_images_are_refused(images, message):
    with pytest.raises(InputError, match=message):
        grey_pixels(images)


def test_an_npz_file_may_hold_labels_of_any_kind(tmp_path, orl):
    n = 6
    path = tmp_path / "faces.npz"
    table = np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5], [0.85, 0.15], [0.15, 0.85], [0.0, 1.0]])
    np.savez(
        path,
        images=orl.images[:n],
        glasses=np.array([1, 0, 1, 0, 1, 0]),
        Smiling=np.array([1, -1, -1, 1, 1, 1]),
        attr_prob=table.astype(np.float16),
        attr_names=np.array([b"Bald", b"No_Beard"]),
        hat=np.array([1, 0, np.nan, 0, 1, 1]),
        person_id=np.array(["a", "a", "b", "c", "c", "b"]),
    )
    faces = read_npz(path)
    nan = np.nan
    expected = {
        "glasses": [1, 0, 1, 0, 1, 0],
        "smile": [1, 0, 0, 1, 1, 1],
        "bald": [1, 0, nan, 1, 0, 0],
        "beard": [1, 0, nan, 1, 0, 0],
        "hat": [1, 0, nan, 0, 1, 1],
    }
    assert sorted(faces.labels) == sorted(expected)
    for concept, labels in expected.items():
        np.testing.assert_array_equal(faces.labels[concept], labels, err_msg=concept)
    assert faces.person.tolist() == [0, 0, 1, 2, 2, 1]
    stored = dict(np.load(path))
    np.savez(path, **stored, thresholds=np.array([0.4, 0.6]))
    assert read_npz(path).labels["bald"].tolist()[3:] == [1, 0, 0]
    assert np.isnan(read_npz(path).labels["bald"][2])
    assert read_npz(path).digest() == faces.digest()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"glasses": np.ones(4)}, "no images"),
        ({"images": np.ones((4, 50, 50))}, "no labels"),
        ({"images": np.ones((4, 50, 50)), "hat": np.ones(3)}, "one number for each"),
        ({"images": np.ones((4, 50, 50)), "hat": np.array([0, 1, 2, 3])}, "neither classes"),
        (
            {"images": np.ones((4, 50, 50)), "hat": np.ones(4), "person_id": np.ones(3)},
            "person_id",
        ),
        ({"images": np.ones((4, 50, 50)), "attr_prob": np.ones((4, 2))}, "attr_names"),
        (
            {"images": np.ones((4, 50, 50)), "hat": np.ones(4), "thresholds": np.array([0.9, 0.1])},
            "thresholds",
        ),
    ],
)
def test_bad_files_are_refused(tmp_path, arrays, message):
    path = tmp_path / "faces.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=message):
        read_npz(path)


def test_what_is_no_npz_file_is_refused(tmp_path):
    for name, content in (("text.npz", b"not a zip"), ("empty.npz", b""), ("cut.npz", b"PK\3\4")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match="cannot be read"):
            read_npz(tmp_path / name)
    np.save(tmp_path / "one.npy", np.ones(3))
    with pytest.raises(InputError, match="cannot be read"):
        read_npz(tmp_path / "one.npy")


def celeba(folder, orl, *, csv=False, inner=""):
    """A folder like CelebA's, with every fifth face of ORL in colour and at the released size."""
    places = [folder / inner, folder / "Anno"] if inner else [folder, folder]
    images = places[0] / "img_align_celeba"
    images.mkdir(parents=True)
    places[1].mkdir(exist_ok=True)
    rows = np.arange(0, 400, 5)
    names = [f"{k + 1:06d}.jpg" for k in range(len(rows))]
    for name, row in zip(names, rows, strict=True):
        Image.fromarray(orl.images[row]).convert("RGB").resize((178, 218)).save(images / name)
    signs = 2 * orl.glasses[rows] - 1
    lines = [[name, sign, 1, -sign] for name, sign in zip(names, signs, strict=True)]
    heads = ["Eyeglasses", "Attractive", "No_Beard"]
    between = "," if csv else " "
    text = [between.join(map(str, line)) for line in lines]
    if csv:
        text = [between.join(["image_id", *heads]), *text]
    else:
        text = [str(len(names)), " ".join(heads) + " ", *text]
    file = places[1] / f"list_attr_celeba.{'csv' if csv else 'txt'}"
    file.write_text("\n".join(text) + "\n")
    people = "\n".join(f"{n} {p}" for n, p in zip(names, orl.person_id[rows], strict=True))
    (places[1] / "identity_CelebA.txt").write_text(people + "\n")
    return rows


@pytest.mark.parametrize(("csv", "inner"), [(False, ""), (True, ""), (False, "Img")])
def test_a_celeba_folder_is_read_as_released_or_copied(tmp_path, orl, csv, inner):
    rows = celeba(tmp_path, orl, csv=csv, inner=inner)
    faces = read_celeba(tmp_path, 1000)
    assert sorted(faces.labels) == ["beard", "glasses"]
    assert np.array_equal(faces.labels["glasses"], orl.glasses[rows])
    assert np.array_equal(faces.labels["beard"], orl.glasses[rows])
    assert len(set(zip(faces.person, orl.person_id[rows], strict=True))) == faces.n_people == 40
    assert np.abs(faces.pixels - orl.images[rows].reshape(-1, 2500).astype(float)).mean() < 5
    few = load(tmp_path, RunSettings(1, options={"images": "10"}))
    assert len(few.content) == 10
    assert few.not_comparable == ""
    assert few.content.digest() == read_celeba(tmp_path, 10).digest()


def test_a_broken_celeba_folder_is_refused(tmp_path, orl):
    with pytest.raises(InputError, match="list of attributes of CelebA is not there"):
        read_celeba(tmp_path, 10)
    celeba(tmp_path, orl)
    with pytest.raises(InputError, match="images must be a whole number"):
        load(tmp_path, RunSettings(1, options={"images": "some"}))
    identities = tmp_path / "identity_CelebA.txt"
    identities.write_text("000001.jpg 3\n")
    with pytest.raises(InputError, match="does not know every image"):
        read_celeba(tmp_path, 10)
    identities.unlink()
    assert read_celeba(tmp_path, 10).person is None
    file = tmp_path / "list_attr_celeba.txt"
    whole = file.read_text()
    file.write_text(whole + "000081.jpg 1\n")
    with pytest.raises(InputError, match="image 81"):
        read_celeba(tmp_path, 10)
    file.write_text("1\nAttractive\n000001.jpg 1\n")
    with pytest.raises(InputError, match="none of the attributes"):
        read_celeba(tmp_path, 10)
    file.write_text(whole)
    (tmp_path / "img_align_celeba" / "000001.jpg").write_bytes(b"no image")
    with pytest.raises(InputError, match="cannot be read"):
        read_celeba(tmp_path, 1000)


def test_labels_without_any_known_value_are_unknown():
    assert np.isnan(truth(np.full(3, np.nan), "hat", 3)).all()
