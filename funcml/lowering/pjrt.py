"""The one door to XLA: devices, buffers, compilation, execution. Only this file knows jaxlib's private names.

    put        : (numpy array, Device)                    -> Buffer            a copy, never narrowed
    to_numpy   : (Buffer)                                 -> numpy array       read-only, zero copy on CPU
    compile    : (StableHLO text, out types, Device)      -> Executable
    Executable : run(list of Buffer)                      -> list of Buffer

A `Buffer` is a `jax.Array` on one device in row-major layout, a `Device` is jax's. The text holds
`func.func public @main` in a module; donated arguments carry `tf.aliasing_output` or `jax.buffer_donor`.
jax is imported at the first need of a device: importing this module costs nothing.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from funcml.core.avals import shaped

__all__ = [
    "Buffer", "Callbacks", "Device", "Executable", "OutTypes", "adopt", "block_until_ready", "buffer_device",
    "calling_host", "compile", "copy_buffer", "default_backend", "default_device", "delete", "deserialize", "device_attributes",
    "devices", "ensure_kernels", "ensure_lapack", "environment_key", "from_dlpack", "is_buffer", "is_deleted",
    "is_foreign_array", "is_supported", "local_devices", "map_pressure", "platform_device", "process_count",
    "process_index", "put", "to_dlpack", "to_numpy",
]

Buffer = Any
Device = Any
OutTypes = Sequence[tuple[tuple[int, ...], np.dtype]]
Options = Sequence[tuple[str, str | bool | int | float]]
Callbacks = Sequence[Callable]


# ---- the client

_loaded: SimpleNamespace | None = None
_load_lock = threading.RLock()


def _xla() -> SimpleNamespace:
    """jax's modules and the few private functions used here, imported once."""
    return _loaded or _load()


def _load() -> SimpleNamespace:
    global _loaded
    with _load_lock:
        if _loaded is None:
            import jax
            import jax.extend.backend
            import jax.ffi
            import jaxlib.version
            from jaxlib import _jax, xla_client

            text = jaxlib.version.__version__
            version = tuple(map(int, re.findall(r"\d+", text)[:2]))
            _loaded = SimpleNamespace(
                jax=jax, _jax=_jax, xla_client=xla_client, version=version, jaxlib_version=text,
                default_backend=jax.default_backend(), default_device=jax.local_devices()[0],
                device_put=_jax.batched_device_put,
                single_device_sharding=jax.sharding.SingleDeviceSharding,
                during_call=_jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
                no_checks={"_skip_checks": True} if version < (0, 12) else {},
            )
        return _loaded


def devices(backend: str | None = None) -> list[Device]:
    """The devices of `backend` ('cpu', 'gpu', 'tpu'; by default the best there is), over all processes.

    Raises RuntimeError if there is no such backend.
    """
    return _xla().jax.devices(backend)


def local_devices(process_index: int | None = None, backend: str | None = None) -> list[Device]:
    """The devices of `backend` that belong to one process, by default to this one."""
    return list(_local_devices(process_index, backend))


@functools.cache
def _local_devices(process_index: int | None, backend: str | None) -> tuple[Device, ...]:
    return tuple(_xla().jax.local_devices(process_index=process_index, backend=backend))


def default_backend() -> str:
    """The platform of the default device: 'cpu', 'gpu' or 'tpu'."""
    return _xla().default_backend


def default_device() -> Device:
    """Where values go that name no device: the first local device of the default backend."""
    return _xla().default_device


def one_device(where: Any) -> Device:
    """A device, or the one device of a sharding over no other."""
    if not hasattr(where, "device_set"):
        return where
    if len(where.device_set) != 1:
        raise ValueError(f"device: expected a device or a sharding over one device, got {where}")
    (device,) = where.device_set
    return device


def platform_device(backend: str) -> Device:
    """The first local device of `backend`."""
    return local_devices(backend=backend)[0]


def process_index() -> int:
    """The number of this process among those that run the program together; 0 alone."""
    return _xla().jax.process_index()


def process_count() -> int:
    """How many processes run the program together; 1 alone."""
    return _xla().jax.process_count()


def device_attributes(device: Device) -> dict[str, Any]:
    """What is known of a device: id, platform, kind, process, place in the host, memory statistics."""
    return {
        "id": device.id,
        "platform": device.platform,
        "device_kind": device.device_kind,
        "process_index": device.process_index,
        "local_hardware_id": device.local_hardware_id,
        "memory_stats": device.memory_stats() if device.process_index == process_index() else None,
    }


def register_ffi_target(name: str, fn: Any, platform: str, api_version: int, **options: Any) -> None:
    """Makes a kernel (a capsule, or one for each stage) callable by this name in programs for `platform`."""
    _xla().jax.ffi.register_ffi_target(name, fn, platform, api_version, **options)


def register_ffi_type(name: str, registration: dict[str, Any], platform: str) -> None:
    """Makes a type of the user's own known to the kernels for `platform`."""
    _xla().jax.ffi.register_ffi_type(name, registration, platform)


def include_dir() -> str:
    """Where the headers of XLA's foreign function interface are."""
    return _xla().jax.ffi.include_dir()


def ensure_kernels(text: str) -> None:
    """Makes the custom calls in this text callable; needed before the program runs."""
    if "@lapack_" in text:
        ensure_lapack()
    if "@cuhybrid_" in text:
        _ensure_hybrid_kernels()


@functools.cache
def ensure_lapack() -> None:
    """Makes the LAPACK custom calls of XLA:CPU callable."""
    _xla()  # importing jax registers the targets
    from jaxlib import lapack

    lapack._lapack.initialize()


@functools.cache
def _ensure_hybrid_kernels() -> None:
    """Makes those custom calls of XLA:GPU callable that compute on the host as well."""
    _xla()
    from jaxlib import gpu_solver

    gpu_solver.initialize_hybrid_kernels()


# ---- buffers

@functools.lru_cache(maxsize=8192)
def _aval(shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return _xla().jax.core.ShapedArray(shape, dtype)


@functools.cache
def _sharding(device: Device) -> Any:
    return _xla().jax.sharding.SingleDeviceSharding(device)


@functools.lru_cache(maxsize=8192)
def _placement(shape: tuple[int, ...], dtype: np.dtype, device: Device | None) -> tuple[Any, Any, list]:
    if not is_supported(dtype):
        raise TypeError(f"put: expected an array of numbers or booleans, got one of dtype {dtype}")
    device = device or default_device()
    return _aval(shape, dtype), _sharding(device), [device]


def is_supported(dtype: np.dtype) -> bool:
    """Whether XLA has this dtype: NumPy's numbers up to 64 bits a part, bool, and those of ml_dtypes."""
    if dtype.kind in "biufc":
        return dtype.char not in "gG"  # extended precision
    return dtype.type.__module__.partition(".")[0] == "ml_dtypes"


def put(x: np.ndarray | np.generic, device: Device | None = None) -> Buffer:
    """A copy of `x` on `device`, with exactly its shape and dtype (64-bit types included).

    Later changes of `x` do not show. Raises TypeError for dtypes that XLA does not have.
    """
    aval, sharding, to = _placement(x.shape, x.dtype, device)
    if not x.dtype.isnative:
        return put(x.astype(x.dtype.newbyteorder("=")), device)
    xla = _xla()
    return xla.device_put(aval, sharding, [x], to, True, False, xla.during_call, True)


# Waits for the value. Read-only; where the host holds the buffer, a view that keeps its memory alive.
to_numpy: Callable[[Buffer], np.ndarray] = np.asarray


def copy_buffer(buffer: Buffer, device: Device | None = None) -> Buffer:
    """A new buffer with the value of `buffer`, on `device` or where it is; they can be donated separately."""
    source = buffer_device(buffer)
    target = device or source
    if target.client is not source.client:
        return put(to_numpy(buffer), target)
    xla = _xla()
    aval, sharding, to = _placement(buffer.shape, buffer.dtype, target)
    return xla.device_put(aval, sharding, [buffer], to, True, True, xla.during_call, True)


def delete(buffer: Buffer) -> None:
    """Frees the memory of `buffer` now; every later use of it is an error."""
    buffer.delete()


def is_deleted(buffer: Buffer) -> bool:
    """Whether `buffer` was deleted or donated."""
    return buffer.is_deleted()


def buffer_device(buffer: Buffer) -> Device:
    """The device that holds `buffer`."""
    sharding = buffer.sharding
    if type(sharding) is _xla().single_device_sharding:
        return sharding._device
    (device,) = sharding.device_set
    return device


def block_until_ready(buffers: Iterable[Buffer]) -> None:
    """Waits until each of `buffers` has been computed; raises what its computation raised."""
    for buffer in buffers:
        buffer.block_until_ready()


def is_foreign_array(x: Any) -> bool:
    """Whether `x` is a `jax.Array` of any kind: a buffer, a sharded or key array, or a tracer of JAX."""
    jax = sys.modules.get("jax")
    return jax is not None and hasattr(jax, "Array") and isinstance(x, jax.Array)


def is_buffer(x: Any) -> bool:
    """Whether `x` is a concrete `jax.Array` on one device."""
    return is_foreign_array(x) and type(x) is _xla().xla_client.ArrayImpl and len(x.sharding.device_set) == 1


def adopt(x: Any) -> Buffer:
    """The buffer that a user's `jax.Array` is: itself, or a row-major copy if its layout is another.

    Raises TypeError for tracers of JAX, typed keys and arrays over several devices, RuntimeError for
    deleted ones.
    """
    if not is_buffer(x):
        raise TypeError(f"expected a concrete jax.Array on one device, got {_describe_foreign(x)}")
    layout = x.format.layout
    if layout is None:
        raise RuntimeError(f"expected a live jax.Array, got a deleted or donated one of shape {x.shape}")
    return x if _is_row_major(layout) else _relaid(x)


def _describe_foreign(x: Any) -> str:
    jax = _xla().jax
    if isinstance(x, jax.core.Tracer):
        return f"a tracer of JAX ({x.aval}): funcml runs under its own transforms, not under jax.jit"
    if not isinstance(x.dtype, np.dtype):
        return f"typed keys of JAX ({x.dtype}): give funcml.random.wrap_key_data their jax.random.key_data"
    return f"one over {len(x.sharding.device_set)} devices: gather it, jax.device_put(x, jax.devices()[0])"


def _is_row_major(layout: Any) -> bool:
    order = layout.major_to_minor
    return order == tuple(range(len(order)))


def _relaid(buffer: Buffer) -> Buffer:
    """A row-major copy: executables expect that layout, and PJRT does not check it."""
    return put(to_numpy(buffer), buffer_device(buffer))


def to_dlpack(buffer: Buffer, **options: Any) -> Any:
    """The DLPack capsule of `buffer`, zero copy; `options` as the protocol has them (stream, copy, ...)."""
    return buffer.__dlpack__(**options)


_DL_CPU, _DL_CUDA, _DL_CUDA_HOST, _DL_ROCM = 1, 2, 3, 10


def from_dlpack(x: Any, device: Device | None = None, copy: bool | None = None) -> Buffer:
    """The buffer of an object with `__dlpack__`; shares memory with it where layout and alignment allow.

    `copy=True` never shares; `copy=False` raises BufferError where sharing is impossible.
    """
    kind, ordinal = (int(n) for n in x.__dlpack_device__())
    on_host = kind in (_DL_CPU, _DL_CUDA_HOST)
    if on_host:
        home = platform_device("cpu")
    else:
        home = next(d for d in local_devices(backend={_DL_CUDA: "cuda", _DL_ROCM: "rocm"}[kind])
                    if d.local_hardware_id == ordinal)
    target = device or home
    if copy is False and target != home:
        raise BufferError(f"from_dlpack: copy=False, but the data is on {home} and {target} was asked for")
    buffer = _import_dlpack(x, home, on_host, copy)
    if not copy and target == home:
        return buffer
    return copy_buffer(buffer, target).block_until_ready()  # copied later than this call, while x may change


def _import_dlpack(x: Any, home: Device, on_host: bool, copy: bool | None) -> Buffer:
    """The buffer on `home`, which shares memory with `x` if it can."""
    xla = _xla()
    stream = None if on_host else home.get_stream_for_external_ready_events()
    try:
        capsule = x.__dlpack__() if on_host else x.__dlpack__(stream=stream)
        buffer = xla._jax.dlpack_managed_tensor_to_buffer(capsule, home, stream, copy and None)
    except (BufferError, xla.jax.errors.JaxRuntimeError) as error:  # read-only, strided, unaligned
        if copy is False or not on_host:
            raise BufferError(f"from_dlpack: this memory cannot be shared: {error}") from None
        return put(np.asarray(x) if hasattr(x, "__array__") else np.from_dlpack(x), home)
    if _is_row_major(buffer.format.layout):
        return buffer
    if copy is False:
        raise BufferError("from_dlpack: copy=False needs a row-major array, got a transposed one")
    return _relaid(buffer)


# ---- executables

_YNN_FUSION = "xla_cpu_experimental_ynn_fusion_type"
_SOUND_FUSION = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"


def _needed_options(device: Device) -> Options:
    """Options without which the backend is wrong.

    XLA:CPU of jaxlib < 0.12 miscompiles some reductions and products that it fuses for its library (rows of a batched
    matvec, rank >= 7); single products it hands over rightly, and those are what the library is fast at. A flag that the user
    gave in XLA_FLAGS wins.
    """
    faulty = device.platform == "cpu" and _xla().version < (0, 12)
    if not faulty or _YNN_FUSION in os.environ.get("XLA_FLAGS", ""):
        return ()
    return ((_YNN_FUSION, _SOUND_FUSION),)


def _compile_options(device: Device, options: Options) -> Any:
    xla = _xla()
    made = xla.xla_client.CompileOptions()
    made.num_replicas = made.num_partitions = 1
    made.device_assignment = xla.xla_client.DeviceAssignment.create(np.array([[device.id]], np.int32))
    made.env_option_overrides = [*_needed_options(device), *options]
    return made


@functools.lru_cache(maxsize=8192)
def _handler(shape: tuple[int, ...], dtype: np.dtype, device: Device) -> Any:
    """What makes the buffer of one result."""
    xla = _xla()
    make = xla._jax.array_result_handler
    return make(_aval(shape, dtype), _sharding(device), committed=True, **xla.no_checks)


class Executable:
    """A compiled program on one device.

    `run(buffers) -> buffers` is a function bound at construction: at 2 leaves each attribute look-up counts.
    The caller answers for the buffers' shapes and dtypes; PJRT checks only their size in bytes.
    """

    __slots__ = ("__weakref__", "device", "handlers", "loaded", "out_types", "run")
    run: Callable[[list[Buffer]], list[Buffer]]

    def __init__(self, loaded: Any, out_types: OutTypes, device: Device):
        self.loaded = loaded
        self.out_types = tuple(out_types)
        self.device = device
        self.handlers = [_handler(shape, dtype, device) for shape, dtype in self.out_types]
        self.run = _runner(loaded.execute_sharded, self.handlers)

    def __repr__(self) -> str:
        return f"Executable({len(self.out_types)} results on {self.device})"

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates for one run: 'flops', 'transcendentals', 'bytes accessed' and more."""
        found = self.loaded.cost_analysis()
        return dict(found[0] if isinstance(found, list) else found)

    def memory_analysis(self) -> dict[str, int]:
        """'argument_size_in_bytes' and so on: output, temp, alias (donated and reused), peak_memory, ..."""
        stats = self.loaded.get_compiled_memory_stats()
        return {name: getattr(stats, name) for name in dir(stats) if name.endswith("_in_bytes")}

    def hlo_text(self) -> str:
        """The optimised HLO."""
        return self.loaded.hlo_modules()[0].to_string()

    def serialize(self) -> bytes:
        """What `deserialize` takes; good for the same `environment_key` only."""
        return self.loaded.client.serialize_executable(self.loaded)


def _runner(execute: Callable, handlers: list) -> Callable[[list[Buffer]], list[Buffer]]:
    def run(buffers):
        try:
            return execute(buffers).consume_with_handlers(handlers)
        except RuntimeError:
            _check_alive(buffers)
            raise

    return run


def _check_alive(buffers: Sequence[Buffer]) -> None:
    for n, buffer in enumerate(buffers):
        if buffer.is_deleted():
            raise RuntimeError(
                f"argument {n} ({shaped(buffer.shape, buffer.dtype)}) was deleted or donated before this "
                "call: use what the call that took it returned, or give that call a copy (x.copy())"
            ) from None


def compile(
    text: str, out_types: OutTypes, device: Device | None = None, options: Options = (), callbacks: Callbacks = ()
) -> Executable:
    """Compiles a StableHLO module whose `main` returns arrays of `out_types` (pairs of shape and np.dtype).

    `options` are pairs of an XLA flag's name (without dashes) and its value; `callbacks` are the functions of NumPy arrays
    that the module calls by their index. They have to return a tuple of what the module expects: nothing is checked here.
    Raises RuntimeError with the line that XLA refuses.
    """
    device = device or default_device()
    xla = _xla()
    chosen = _compile_options(device, options)
    try:
        if callbacks:
            place = xla._jax.DeviceList((device,))
            loaded = device.client.compile_and_load(_parsed(text), place, chosen, host_callbacks=list(callbacks))
        else:
            loaded = device.client.compile_and_load(text, (device,), chosen)
    except xla.jax.errors.JaxRuntimeError as error:
        refused = _refused_line(text, str(error))
        raise RuntimeError(f"XLA did not compile the program: {error}{refused}") from error
    return Executable(loaded, out_types, device)


def _parsed(text: str) -> Any:
    """The module as an object of MLIR, which PJRT wants beside callbacks."""
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    with make_ir_context():
        return ir.Module.parse(text)


def _refused_line(text: str, message: str) -> str:
    place = re.search(r"-:(\d+):\d+: error", message)
    if place is None:
        return ""
    return f"\nat: {text.splitlines()[int(place[1]) - 1].strip()}"


def deserialize(
    blob: bytes, out_types: OutTypes, device: Device | None = None, options: Options = (), callbacks: Callbacks = ()
) -> Executable:
    """The executable that `Executable.serialize` wrote, for the device it was compiled for; with the same number of callbacks.

    The blob must come from the same `environment_key`: jaxlib loads others without complaint. It is machine
    code: never load one that others may have written.
    """
    device = device or default_device()
    place = _xla()._jax.DeviceList((device,))
    held = {"host_callbacks": list(callbacks)} if callbacks else {}
    loaded = device.client.deserialize_executable(blob, place, _compile_options(device, options), **held)
    return Executable(loaded, out_types, device)


def map_pressure() -> float:
    """The part of the memory maps that Linux grants a process which is taken; 0 where this is not known.

    An executable of XLA:CPU takes up to some tens of maps, and a process that has none left is killed in the middle of XLA.
    """
    try:
        with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
            granted = int(file.read())
        with open("/proc/self/maps", "rb") as maps:
            return maps.read().count(b"\n") / granted
    except (OSError, ValueError):
        return 0.0


def calling_host(executable: Executable, raised: list[BaseException]) -> Callable[[list[Buffer]], list[Buffer]]:
    """`executable.run` for a program with callbacks: it waits for the end, and what a callback raised comes out as it was.

    A callback that raises puts its exception into `raised`.
    """
    xla = _xla()

    def run(buffers):
        try:
            found = executable.loaded.execute_sharded(buffers, with_tokens=True)
            token = found.consume_token().get_token(0)
            outs = found.consume_with_handlers(executable.handlers)
            token.block_until_ready()
            xla.jax.block_until_ready(outs)
        except RuntimeError:
            _check_alive(buffers)
            if raised:
                raise raised.pop(0) from None
            raise
        finally:
            raised.clear()
        return outs

    return run


@functools.cache
def environment_key(device: Device | None = None) -> str:
    """What an executable depends on besides text and options: versions, flags, hardware, device id."""
    device = device or default_device()
    facts = {
        "jaxlib": _xla().jaxlib_version,
        "platform": f"{device.platform} {device.client.platform_version}",
        "device": f"{device.device_kind} {device.id}",
        "host": f"{sys.platform} {platform.machine()} {_cpu_features() if device.platform == 'cpu' else ''}",
        "needed options": repr(_needed_options(device)),
        **{name: os.environ.get(name, "") for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")},
    }
    return "\n".join(f"{name}: {value}" for name, value in facts.items())


def _cpu_features() -> str:
    """What the processor can do: XLA:CPU compiles for exactly the one it runs on."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n\n", 1)[0].splitlines()
    except OSError:
        return f"{platform.processor()} {platform.release()}"
    telling = ("model name", "flags", "Features", "isa", "CPU part", "CPU implementer")
    return "; ".join(line for line in lines if line.startswith(telling))
