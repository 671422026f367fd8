"""How the tests expect a topology to be refused."""

import re

import pytest

from headrace import TopologyError


def refused(*parts: str) -> pytest.RaisesExc[TopologyError]:
    """Expect a TopologyError that has all of these in its message."""
    return pytest.raises(TopologyError, match="(?s)" + "".join(f"(?=.*{re.escape(part)})" for part in parts))
