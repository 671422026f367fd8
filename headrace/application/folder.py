"""The folder of an application under `state_dir`: Spark's checkpoint, images, and a lock.

Tests: `tests/application/test_streams.py`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from headrace.errors import StreamsError


class ApplicationFolder:
    """Where an application keeps everything that must survive a restart."""

    def __init__(self, state_dir: str | Path, application_id: str) -> None:
        self.application_id = application_id
        self.path = (Path(state_dir).expanduser() / application_id).absolute()
        self.checkpoint = self.path / "checkpoint"
        self.identity = self.path / "identity.json"
        self.images = self.path / "images"
        self.stop_file = self.path / "stop"
        self._lock_file = self.path / "lock"
        self._lock: int | None = None

    def lock(self) -> None:
        """Lock the folder until this process ends or unlocks it. Raise if another process has the lock."""
        self.path.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(handle, 32, 0).decode() or "?"
            os.close(handle)
            raise StreamsError(
                f"application '{self.application_id}' is already running (process {holder}, '{self.path}'). "
                "Stop it first, or give this one another application_id"
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        self._lock = handle
        self.stop_file.unlink(missing_ok=True)

    def exists(self) -> bool:
        """Tell whether the application has ever been started here."""
        return self.identity.exists() or self.checkpoint.exists()

    def has_begun(self) -> bool:
        """Tell whether a batch was ever planned."""
        return any(self.checkpoint.glob("offsets/[0-9]*"))

    def has_planned(self, batch: int) -> bool:
        """Tell whether the checkpoint has a batch."""
        return (self.checkpoint / "offsets" / str(batch)).exists()

    def check_unlocked(self) -> None:
        """Raise if another process uses the folder."""
        if self._lock_file.exists():
            self.lock()
            self.unlock()

    def unlock(self) -> None:
        """Unlock the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def remove(self) -> None:
        """Delete everything; the caller holds the lock."""
        self.identity.unlink(missing_ok=True)
        self.stop_file.unlink(missing_ok=True)
        for path in (self.checkpoint, self.images):
            if path.exists():
                shutil.rmtree(path)
