"""What is new in the field: `jet` (Taylor mode)."""

from funcml.experimental import jet

__all__ = ["jet"]
