"""What is new in the field: `jet` (Taylor mode), `checkify` (checks inside traced functions)."""

from funcml.experimental import checkify, jet

__all__ = ["checkify", "jet"]
