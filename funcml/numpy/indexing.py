"""NumPy-style indexing: `x[index]` and `x.at[index]`.

    getitem           `Array.__getitem__`
    IndexUpdateHelper `Array.at`
    rewriting_take    `x.at[index].get(...)`
    scatter_update    `x.at[index].set(...)` and its kin

An index known now that is out of bounds raises IndexError, as in NumPy. One known only at run time is clipped when
it is read and dropped when it is written, unless `mode` says otherwise; derivatives do the same.
"""

from funcml.numpy.index_read import getitem, rewriting_take
from funcml.numpy.index_update import IndexUpdateHelper, IndexUpdateRef, scatter_update

__all__ = ["IndexUpdateHelper", "IndexUpdateRef", "getitem", "rewriting_take", "scatter_update"]
