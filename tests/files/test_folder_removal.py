"""A folder that went wrong is gone, though others were still writing into it."""

import threading

import pytest

from expunge.files import folders
from expunge.files.folder_job import FolderJob
from expunge.files.folders import fill_folder


def test_writers_that_have_not_heard_of_the_fault_leave_nothing(tmp_path, monkeypatch):
    real, looks = folders.shutil.rmtree, []

    def busy(folder, **settings):  # a file appears while the folder is removed, the first time
        looks.append(folder)
        if len(looks) > 1:
            real(folder, **settings)

    monkeypatch.setattr(folders.shutil, "rmtree", busy)
    monkeypatch.setattr(folders, "PAUSE", 0.001)

    def fill(folder):
        looks.clear()
        late = threading.Thread(target=(folder / "part-00000.npy").write_bytes, args=(b"late",))
        late.start()
        late.join()
        raise ValueError("row 7")

    with pytest.raises(ValueError, match="row 7"):
        fill_folder(FolderJob(None, tmp_path / "out", {}, False, False), fill)
    assert len(looks) == 2
    assert not list(tmp_path.iterdir())
