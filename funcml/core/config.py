"""Settings: `config.<flag>` reads one, `config.update(name, value)` sets it for the process,
`with <flag>(value):` sets it for a block in this thread.

    config.enable_x64                            : bool            what holds here, now
    config.update("enable_x64", True)            : None            every thread
    with enable_x64(True): ...                                     this thread, until the block ends
    config.trace_key()                           : tuple           the flags that change what is traced

A flag that no thread overrides is a plain instance attribute, so that the usual read costs what an
attribute costs. The first override of a flag takes that attribute away and uncovers the `Flag` descriptor
beneath it, which knows about threads; the end of the last override puts it back.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import threading
from collections.abc import Iterable
from typing import Any, ClassVar

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_EXPECTED = {bool: "True or False", int: "an int >= 0", str: "a path"}


class Flag:
    """One setting: what it may be, what it is at first, and what it means; called, a context manager."""

    def __init__(self, name: str, kind: type, default: Any, doc: str, *, choices: tuple[str, ...] = (),
                 optional: bool = False, traced: bool = False):
        self.name, self.kind, self.default, self.__doc__ = name, kind, default, doc
        self.choices, self.optional, self.traced = choices, optional, traced
        self.env = f"FUNCML_{name.upper()}"
        self.covers = (name, "_trace_key") if traced else (name,)

    def __get__(self, config: Config | None, owner: type | None = None) -> Any:
        if config is None:
            return self
        return config._local.overrides.get(self.name, config._globals[self.name])

    def __call__(self, value: Any = True) -> Override:
        """A context manager (and decorator) under which this thread sees `value`."""
        return Override(self, self.checked(value))

    def __repr__(self) -> str:
        return f"Flag({self.name}: {self.expected()}, default {self.default!r}, set by {self.env})"

    def expected(self) -> str:
        """What the flag takes, in words."""
        names = [repr(choice) for choice in self.choices] or [_EXPECTED[self.kind]]
        return ", ".join(names + ["None"] * self.optional)

    def checked(self, value: Any) -> Any:
        """`value` as the flag keeps it; raises TypeError or ValueError for what the flag does not take."""
        if value is None and self.optional:
            return None
        if self.kind is str and not self.choices and isinstance(value, (str, os.PathLike)):
            return os.fspath(value)
        if type(value) is not self.kind:
            came = f"{value!r} of type {type(value).__name__}"
            raise TypeError(f"config: {self.name} takes {self.expected()}; got {came}")
        if (self.choices and value not in self.choices) or (type(value) is int and value < 0):
            raise ValueError(f"config: {self.name} takes {self.expected()}; got {value!r}")
        return value

    def from_env(self) -> Any:
        """The value that the environment variable asks for, or the default; ValueError for nonsense."""
        text = os.environ.get(self.env, "").strip()
        if not text:
            return self.default
        value: Any = text
        if self.kind is bool:
            value = text.lower() in _TRUE if text.lower() in _TRUE + _FALSE else text
        elif self.kind is int:
            value = int(text) if text.isdecimal() else text
        elif self.optional and text.lower() == "none":
            value = None
        try:
            return self.checked(value)
        except (TypeError, ValueError):
            takes = f"one of {', '.join(_TRUE + _FALSE)}" if self.kind is bool else self.expected()
            raise ValueError(f"environment variable {self.env}={text!r}: {self.name} takes {takes}") from None


class Override(contextlib.ContextDecorator):
    """`flag` reads as `value` in this thread while the block, or the decorated function, runs."""

    def __init__(self, flag: Flag, value: Any):
        self.flag, self.value = flag, value

    def __enter__(self) -> None:
        config._enter(self.flag, self.value)

    def __exit__(self, *exc: object) -> None:
        config._exit(self.flag)


FLAGS: dict[str, Flag] = {}


def _flag(name: str, kind: type, default: Any, doc: str, **options: Any) -> Flag:
    FLAGS[name] = Flag(name, kind, default, doc, **options)
    return FLAGS[name]


enable_x64 = _flag(
    "enable_x64", bool, False, traced=True,
    doc="Python scalars and creation functions without a dtype are 64-bit. "
        "An explicit dtype is honoured either way.")
numpy_dtype_promotion = _flag(
    "numpy_dtype_promotion", str, "standard", choices=("standard", "strict"), traced=True,
    doc="'strict': operands of different dtypes are an error, unless the narrower is a Python scalar.")
numpy_rank_promotion = _flag(
    "numpy_rank_promotion", str, "allow", choices=("allow", "warn", "raise"), traced=True,
    doc="What happens when an operand of lower rank is broadcast to a higher one.")
default_matmul_precision = _flag(
    "default_matmul_precision", str, None, optional=True, traced=True,
    choices=("default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
             "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM",
             "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
             "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32",
             "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9",
             "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64"),
    doc="Precision, or dot algorithm, of contractions and convolutions that name none.")
default_prng_impl = _flag(
    "default_prng_impl", str, "threefry2x32", traced=True,
    choices=("threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg"),
    doc="Implementation of random keys for which none is named, and to which untyped keys belong.")
random_seed_offset = _flag(
    "random_seed_offset", int, 0, traced=True,
    doc="Is added to every seed of which a random key is made.")
disable_jit = _flag(
    "disable_jit", bool, False, traced=True,
    doc="`jit` calls its function as it is: nothing is compiled whole, and Python sees values.")
debug_nans = _flag(
    "debug_nans", bool, False, traced=True,
    doc="A NaN among the results of a run is a FloatingPointError that names the operation which made it.")
debug_infs = _flag(
    "debug_infs", bool, False, traced=True,
    doc="An infinity among the results of a run is a FloatingPointError that names the operation which made it.")
check_jaxprs = _flag(
    "check_jaxprs", bool, False,
    doc="The output of every pass is type-checked. The tests turn it on.")
traceback_filtering = _flag(
    "traceback_filtering", str, "on", choices=("on", "off"),
    doc="Tracebacks leave out the frames inside funcml.")
disk_cache = _flag(
    "disk_cache", bool, True,
    doc="Executables are kept on disk and found there by later processes.")
disk_cache_dir = _flag(
    "disk_cache_dir", str, None, optional=True,
    doc="Folder of the disk cache; None is a folder in the user's cache folder.")
disk_cache_max_bytes = _flag(
    "disk_cache_max_bytes", int, 2 * 1024**3,
    doc="Size above which the disk cache drops what was unused longest.")
eager_miss_limit = _flag(
    "eager_miss_limit", int, 8,
    doc="After so many compilations in a row at one call site without a cache hit, it is evaluated op by op.")
explain = _flag(
    "explain", bool, False,
    doc="Says on stderr what is traced, compiled or taken from a cache, and why.")
source_lines = _flag(
    "source_lines", bool, True,
    doc="Each equation remembers the user's line that made it.")


class _ThreadState(threading.local):
    """Overrides in force, what it did outside each open block, and its trace key and the age of that."""

    def __init__(self) -> None:
        self.overrides: dict[str, Any] = {}
        self.outer: list[dict[str, Any]] = []
        self.generation = -1
        self.trace_key: tuple = ()


class TraceKey(tuple):
    """The traced flags; one object for each combination, so that it hashes and compares by identity in cache keys."""

    _known: ClassVar[dict[tuple, TraceKey]] = {}
    __hash__ = object.__hash__
    __eq__ = object.__eq__
    __ne__ = object.__ne__

    @classmethod
    def of(cls, values: Iterable) -> TraceKey:
        """The one key of these values."""
        values = tuple(values)
        return cls._known.setdefault(values, cls(values))


class _TraceKey:
    """The descriptor beneath `config._trace_key`: what to read while some thread overrides a traced flag."""

    def __get__(self, config: Config, owner: type | None = None) -> tuple:
        local = config._local
        if local.generation != config._generation:
            local.generation = config._generation
            local.trace_key = TraceKey.of(flag.__get__(config) for flag in FLAGS.values() if flag.traced)
        return local.trace_key


class Config:
    """The settings of the process, one attribute a flag; see the module's docstring."""

    _trace_key = _TraceKey()

    def __init__(self, values: dict[str, Any]):
        state = {"_globals": values, "_local": _ThreadState(), "_lock": threading.RLock(), "_generation": 0,
                 "_open": dict.fromkeys([*FLAGS, "_trace_key"], 0)}
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self._derive_trace_key()
        for name in self._open:
            self._expose(name)

    def update(self, name: str, value: Any) -> None:
        """Sets a flag for all threads; `name` may carry JAX's prefix (`jax_enable_x64`).

        Raises AttributeError for an unknown flag, TypeError or ValueError for a value that it does not take.

        >>> config.update("enable_x64", "yes")
        Traceback (most recent call last):
        TypeError: config: enable_x64 takes True or False; got 'yes' of type str
        """
        flag = self._find(name)
        value = flag.checked(value)
        with self._lock:
            self._globals[flag.name] = value
            object.__setattr__(self, "_generation", self._generation + 1)
            self._derive_trace_key()
            for covered in flag.covers:
                self._expose(covered)

    def values(self) -> dict[str, Any]:
        """What every flag is in this thread, now."""
        return {name: getattr(self, name) for name in FLAGS}

    @property
    def x64_enabled(self) -> bool:
        """Whether `enable_x64` is on, under JAX's name."""
        return self.enable_x64

    def trace_key(self) -> tuple:
        """The flags that change how a function is traced: a part of the key of every traced program."""
        return self._trace_key

    def __getattr__(self, name: str) -> Any:
        return getattr(self, self._find(name).name)

    def __setattr__(self, name: str, value: Any) -> None:
        known = self._find(name).name
        raise AttributeError(f'config.{known} is read-only; write config.update("{known}", {value!r}), '
                             f"or `with {known}({value!r}):` for a block")

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value!r}' for name, value in self.values().items())})"

    def _find(self, name: str) -> Flag:
        flag = FLAGS.get(name.removeprefix("jax_"))
        if flag is None:
            near = difflib.get_close_matches(name.removeprefix("jax_"), FLAGS, n=3) or FLAGS
            raise AttributeError(f"config has no flag {name!r}; there is {', '.join(near)}")
        return flag

    def _enter(self, flag: Flag, value: Any) -> None:
        local = self._local
        with self._lock:
            for name in flag.covers:
                self._open[name] += 1
                self.__dict__.pop(name, None)
        local.outer.append(local.overrides)
        local.overrides = {**local.overrides, flag.name: value}
        local.generation = -1

    def _exit(self, flag: Flag) -> None:
        local = self._local
        local.overrides = local.outer.pop()
        local.generation = -1
        with self._lock:
            for name in flag.covers:
                self._open[name] -= 1
                self._expose(name)

    def _expose(self, name: str) -> None:
        """Makes `name` a plain attribute, if no thread overrides it."""
        if not self._open[name]:
            object.__setattr__(self, name, self._globals[name])

    def _derive_trace_key(self) -> None:
        values = self._globals
        values["_trace_key"] = TraceKey.of(values[flag.name] for flag in FLAGS.values() if flag.traced)


for _name, _declared in FLAGS.items():
    setattr(Config, _name, _declared)

config = Config({name: flag.from_env() for name, flag in FLAGS.items()})
