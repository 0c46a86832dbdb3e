"""A package written for JAX, each of its functions made to take and give arrays of funcml.

    Namespace(package).f(*args)

    arguments with an array of ours or of NumPy  -> the function through `from_jax`
    arguments with a tracer of JAX               -> the function itself: it is called by code that JAX is recording
    no arrays at all                             -> the function itself; functions in its result are adopted in their turn

So a builder such as `adam(1e-3)` gives functions that take arrays of ours, and what is built from those, `chain(a, b)`, does
too. Classes, constants and exceptions are those of the package.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from funcml import dtypes, tree
from funcml.core.errors import hide_internal_frames
from funcml.core.tracing import Tracer, aval_of
from funcml.core.values import Array
from funcml.interop.capture import as_jax
from funcml.interop.from_jax import JaxFunction, from_jax
from funcml.interop.jaxprs import is_jax_tracer, is_recording
from funcml.lowering.array import asarray
from funcml.lowering.pjrt import is_buffer, is_foreign_array
from funcml.random.keys import key_data

__all__ = ["AdoptedFunction", "Namespace", "adopt"]

_NUMBERS = (float, int, bool, complex)


class Namespace(ModuleType):
    """The public names of a module, adopted at their first use; submodules are namespaces."""

    def __init__(self, module: ModuleType, name: str):
        super().__init__(name, module.__doc__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            inside = found.__name__.startswith(f"{self._module.__name__}.")
            found = Namespace(found, f"{self.__name__}.{name}") if inside else found
        else:
            found = adopt(found)
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return sorted({n for n in dir(self._module) if not n.startswith("_")})


def adopt(value: Any) -> Any:
    """A name of a package as funcml shows it: functions, and classes with `init` and `update`, adopted."""
    if inspect.isclass(value):
        return _adopted_class(value) if _is_transformation(value) and not issubclass(value, tuple) else value
    if isinstance(value, tuple) or not callable(value) or isinstance(value, JaxFunction) or _is_typing(value):
        return value
    return AdoptedFunction(value, ())


def _is_typing(value) -> bool:
    return type(value).__module__ in ("typing", "types") and not inspect.isroutine(value)


def _is_transformation(value) -> bool:
    return hasattr(value, "init") and hasattr(value, "update")


class AdoptedFunction(JaxFunction):
    """A function of a package written for JAX; see the module's docstring."""

    def __repr__(self) -> str:
        return f"<{self.name} on arrays of funcml>"

    def _careful_call(self, args, kwargs):
        if is_recording():
            return self._function(*args, **kwargs)
        try:
            leaves, treedef = tree.flatten((args, kwargs))
            if any(map(is_jax_tracer, leaves)):
                return self._function(*args, **kwargs)
            if any(map(self._is_ours, leaves)):
                return self._our_call(leaves, treedef)
            return _adopted_result(self._function(*args, **kwargs), keep_arrays=any(map(is_foreign_array, leaves)))
        except Exception as error:
            hide_internal_frames(error)
            raise

    def _is_ours(self, x) -> bool:
        return isinstance(x, Array | np.ndarray | np.generic) or type(x) in self._numbers

    def _our_call(self, leaves, treedef):
        traced = any(type(x) is Tracer for x in leaves)
        try:
            return self._translated_call(leaves, treedef)
        except _GivesObjects as found:
            if traced:
                return self._deferred(leaves, treedef, found.args[0])
        except TypeError as error:
            if traced or not _asks_for_values(error):
                raise
        args, kwargs = tree.unflatten(treedef, map(_to_jax, leaves))
        return _adopted_result(self._function(*args, **kwargs), keep_arrays=False)

    def _deferred(self, leaves, treedef, result):
        """What a builder makes of traced arrays: functions that call it again, wherever they are themselves called."""
        traced = list(map(self._is_traced, leaves))
        values = [x for x, t in zip(leaves, traced, strict=True) if t]

        def build(given):
            rest = iter(given)
            args, kwargs = tree.unflatten(treedef, [next(rest) if t else x for x, t in zip(leaves, traced, strict=True)])
            return self._function(*args, **kwargs)

        for x in tree.leaves(result):
            if _may_hold_arrays(x) and not _is_function(x):
                raise TypeError(f"{self.name}: traced arrays would be lost inside {x!r}, which is not a tree; pass known values")
        return _map_functions(lambda i, f, numbers: _deferred_leaf(i, f, numbers, build, values), result)

    def _check_result(self, result) -> None:
        if any(map(_may_hold_arrays, tree.leaves(result))):
            raise _GivesObjects(result)


class _GivesObjects(Exception):
    """The function builds functions or other objects, which stand in `args[0]`: it is not to be translated itself."""


def _deferred_leaf(index: int, function: Callable, numbers, build: Callable, values: list):
    def call(given, args, kwargs):
        return tree.leaves(build(given))[index](*args, **kwargs)

    bridge = from_jax(call, numbers=numbers)

    def deferred(*args, **kwargs):
        if is_recording():
            return call(list(map(as_jax, values)), args, kwargs)
        return bridge(values, args, kwargs)

    return deferred


# ---- results ---------------------------------------------------------------------------------------------------------


def _is_function(x) -> bool:
    return callable(x) and not inspect.isclass(x) and not isinstance(x, Array) and not is_foreign_array(x)


def _may_hold_arrays(x) -> bool:
    """Whether a leaf that is no array is an object with insides: a function, an instance compared by identity."""
    if inspect.isclass(x) or isinstance(x, Array) or is_foreign_array(x):
        return False
    return callable(x) or type(x).__hash__ is object.__hash__


def _adopted_result(result: Any, keep_arrays: bool) -> Any:
    """The result with its functions adopted, and the arrays of JAX made ours."""
    adopted = _map_functions(lambda i, f, numbers: f if isinstance(f, JaxFunction) else AdoptedFunction(f, numbers), result)
    if keep_arrays:
        return adopted
    return tree.map(lambda x: asarray(x) if is_buffer(x) else x, adopted)


def _map_functions(wrap: Callable, result: Any) -> Any:
    """`result` with `wrap(number of the leaf, function, numbers)` for its functions; init and update trace all numbers."""
    numbers = _NUMBERS if isinstance(result, tuple) and _is_transformation(result) else ()
    leaves, treedef = tree.flatten(result)
    return tree.unflatten(treedef, [wrap(i, x, numbers) if _is_function(x) else x for i, x in enumerate(leaves)])


def _adopted_class(cls: type) -> type:
    """A subclass whose instances have their public methods adopted."""

    def __init__(self, *args, **kwargs):
        cls.__init__(self, *args, **kwargs)
        for name, method in inspect.getmembers(self, inspect.ismethod):
            if not name.startswith("_"):
                setattr(self, name, AdoptedFunction(method, _NUMBERS if name in ("init", "update") else ()))

    return type(cls.__name__, (cls,), {"__init__": __init__, "__doc__": cls.__doc__, "__module__": cls.__module__})


# ---- concrete values for JAX -----------------------------------------------------------------------------------------


def _to_jax(x):
    """An array of ours as JAX takes it at once: NumPy's, a Python number if weakly typed, JAX's own keys."""
    if not isinstance(x, Array):
        return x
    aval = aval_of(x)
    if dtypes.is_key(aval.dtype):
        import jax

        return jax.random.wrap_key_data(np.asarray(key_data(x)), impl=aval.dtype.impl)
    return x.item() if aval.weak_type and not aval.ndim else np.asarray(x)


def _asks_for_values(error: Exception) -> bool:
    import jax

    return isinstance(error, jax.errors.JAXTypeError)
