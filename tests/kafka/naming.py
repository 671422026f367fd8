"""Names that no other test uses: all tests share one broker."""

from uuid import uuid4


def unique(name: str) -> str:
    """Return a name that begins like another one."""
    return f"{name}-{uuid4().hex[:8]}"
