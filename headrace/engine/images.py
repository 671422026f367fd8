"""The images of the tasks on this host. A process opens each once; after a reboot they are deleted."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

from headrace.state.lmdb_image import LmdbImage, LmdbSpace
from headrace.state.ordered_map import TimeKey

_MOST_OPEN = 64
_BOOT_VARIABLE = "HEADRACE_BOOT_ID"
_open: OrderedDict[Path, LmdbImage] = OrderedDict()
_process = os.getpid()


def image_folder(given: Path | None, application_id: str) -> Path:
    """Return the folder of an application's images: the given one, or one on the executor's own disk.

    On the executor's disk they last as long as the executor, because Spark deletes its local directories at its end.
    """
    if given is not None:
        return given
    local = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    return Path(local or tempfile.gettempdir()) / "headrace" / application_id / boot_id()


def current_images(images: Path) -> Path:
    """Return the folder for images since the machine was started. Delete older images, which may be damaged."""
    if images.exists() and _BOOT_VARIABLE not in os.environ:
        for folder in images.iterdir():
            if folder.name != boot_id():
                shutil.rmtree(folder, ignore_errors=True)
    return images / boot_id()


@contextmanager
def open_image(path: Path) -> Iterator[LmdbImage]:
    """Use the image in a folder. A process opens each once and keeps it open."""
    global _process
    if _process != os.getpid():
        _open.clear()  # LMDB cannot be used after a fork: the open images are the parent's
        _process = os.getpid()
    image = _open.get(path)
    if image is None or not path.exists():
        image = _open[path] = LmdbImage(path)
    else:
        image.refresh()
    _open.move_to_end(path)
    while len(_open) > _MOST_OPEN:
        _open.popitem(last=False)[1].close()
    try:
        yield image
    finally:
        image.rest()


@cache
def boot_id() -> str:
    """Return an id that changes when the machine is started again.

    Images are written without waiting for the disk, so they are valid only until the machine stops. In a test,
    `HEADRACE_BOOT_ID` makes one machine look like another.
    """
    given = os.environ.get(_BOOT_VARIABLE)
    if given:
        return given
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return uuid4().hex


class SpacesOfTask:
    """The spaces of one sub-topology in the image of a task."""

    def __init__(self, image: LmdbImage, prefix: str, stores: Sequence[str], generations: Mapping[str, int]) -> None:
        self._image, self._prefix = image, prefix
        self._renewed = {store: generations[store] for store in stores if generations.get(store)}
        self.opened: list[str] = []

    def space(self, name: str, time_key: TimeKey | None = None) -> LmdbSpace:
        full = self.name_of(name)
        self.opened.append(full)
        return self._image.space(full, time_key)

    def name_of(self, space: str) -> str:
        """Return a space's name in the image. It changes when its store is dropped."""
        for store, generation in self._renewed.items():
            if space == store or space.startswith(f"{store}/"):
                return f"{self._prefix}{space}#{generation}"
        return self._prefix + space
