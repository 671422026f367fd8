"""What every store is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.serdes import Serde
from headrace.state.image import Image
from headrace.state.small_state import SmallState


@dataclass(frozen=True)
class StoreSetup:
    """The name and serdes of a store, and the image and small state of the task that has it."""

    name: str
    key_serde: Serde[Any]
    value_serde: Serde[Any]
    image: Image
    small_state: SmallState
