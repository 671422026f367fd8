"""The page for contributors lists the floors as the test of the architecture has them."""

import re

from tests.docs.pages import ROOT
from tests.test_architecture import FLOORS

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_floors_are_those_that_are_checked() -> None:
    rows = re.findall(r"^\| (`.*?) \|", PAGE[PAGE.index("## Floors") : PAGE.index("## Seams")], re.MULTILINE)

    told = [name for row in rows for name in re.findall(r"`(\w+)`", row)]

    assert told == [floor or "headrace" for floor in FLOORS]
