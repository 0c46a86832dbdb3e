"""Executables on disk, so that later processes need not compile them.

    load_or_compile : (StableHLO text, out types, Device) -> Executable
    key             : (*parts that the executable depends on) -> str
    get             : (key) -> bytes or None
    put             : (key, bytes) -> None

One file per executable, written beside its place and moved there, so that readers see a whole file or none
and any number of processes may write. A file that is missing, truncated, altered, unreadable or refused by
the backend is a miss; a folder that cannot be written keeps nothing. No fault of the disk breaks a program.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
import zlib
from contextlib import suppress

from funcml.core.config import config
from funcml.lowering import pjrt

__all__ = ["discard", "evict", "folder", "get", "key", "load_or_compile", "put"]

_MAGIC = b"funcml executable 1\n"
_DIGEST_BYTES = 32
_SUFFIX = ".xla"
_TEMPORARY = "funcml-"  # how the names of files in writing begin
_ABANDONED_SECONDS = 3600.0
_BLOCK_BYTES = 4096  # a file takes whole blocks: most entries are smaller than one


def load_or_compile(
    text: str,
    out_types: pjrt.OutTypes,
    device: pjrt.Device | None = None,
    options: pjrt.Options = (),
    callbacks: pjrt.Callbacks = (),
) -> pjrt.Executable:
    """`pjrt.compile`, unless the same program, compiled in the same environment, is kept on disk."""
    if not config.disk_cache:
        return pjrt.compile(text, out_types, device, options, callbacks)
    name = key(text, pjrt.environment_key(device), repr(tuple(options)))
    blob = get(name)
    if blob is not None:
        try:
            return pjrt.deserialize(blob, out_types, device, options, callbacks)
        except RuntimeError:
            discard(name)
    executable = pjrt.compile(text, out_types, device, options, callbacks)
    try:
        blob = executable.serialize()
    except RuntimeError:  # not every backend can
        return executable
    put(name, blob)
    return executable


def key(*parts: str) -> str:
    """The name of the entry that depends on exactly these texts."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(b"%d:" % len(encoded))
        digest.update(encoded)
    return digest.hexdigest()


def folder() -> str | None:
    """Where entries are kept: `config.disk_cache_dir`, else `funcml` in the user's cache folder, if any."""
    return config.disk_cache_dir or _default_folder()


def _default_folder() -> str | None:
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(base, "funcml") if base and os.path.isabs(base) else None


def _path(name: str) -> str | None:
    place = folder()
    return place and os.path.join(place, name + _SUFFIX)


def get(name: str) -> bytes | None:
    """What was last put under `name`, or None."""
    path = _path(name)
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            stored = file.read()
    except (OSError, ValueError):
        return None
    blob = _unpack(stored)
    if blob is None:
        discard(name)
        return None
    with suppress(OSError):
        os.utime(path)  # the time of last use, by which `evict` chooses
    return blob


def put(name: str, blob: bytes) -> None:
    """Keeps `blob` under `name`, if the disk lets it; now and then drops what was unused longest."""
    path = _path(name)
    if path is None:
        return
    stored = _pack(blob)
    try:
        _write(path, stored)
    except (OSError, ValueError):
        return
    if _evict_is_due(name, len(stored)):
        evict()


def discard(name: str) -> None:
    """Forgets the entry `name`, if there is one."""
    path = _path(name)
    if path is not None:
        with suppress(OSError, ValueError):
            os.unlink(path)


def _pack(blob: bytes) -> bytes:
    """[magic, SHA-256 of the rest, zlib of the blob]; zlib's level 1 makes executables five times smaller."""
    packed = zlib.compress(blob, 1)
    return _MAGIC + hashlib.sha256(packed).digest() + packed


def _unpack(stored: bytes) -> bytes | None:
    start = len(_MAGIC) + _DIGEST_BYTES
    digest, packed = stored[len(_MAGIC) : start], stored[start:]
    if not stored.startswith(_MAGIC) or hashlib.sha256(packed).digest() != digest:
        return None
    return zlib.decompress(packed)


def _write(path: str, stored: bytes) -> None:
    """Writes a file under a name of its own, then moves it to `path`: no reader ever sees a part."""
    place = os.path.dirname(path)
    os.makedirs(place, mode=0o700, exist_ok=True)  # entries are machine code: nobody else may write here
    handle, temporary = tempfile.mkstemp(prefix=_TEMPORARY, dir=place)
    try:
        with open(handle, "wb") as file:
            file.write(stored)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


_written_since_evict = 0


def _evict_is_due(name: str, size: int) -> bool:
    """After an eighth of the bound was written, and at one name in 64, so that short processes do it too."""
    global _written_since_evict
    _written_since_evict += _on_disk(size)
    return _written_since_evict > config.disk_cache_max_bytes // 8 or int(name[:2], 16) % 64 == 0


def evict() -> None:
    """Drops what was unused longest until the folder holds at most 7/8 of `config.disk_cache_max_bytes`,
    if it holds more than that bound; and temporary files that a killed process left."""
    global _written_since_evict
    _written_since_evict = 0
    entries = _entries()
    bound = config.disk_cache_max_bytes
    total = sum(size for _, size, _ in entries)
    if total <= bound:
        return
    for _, size, path in sorted(entries):
        with suppress(OSError):
            os.unlink(path)
            total -= size
        if total <= bound - bound // 8:
            return


def _entries() -> list[tuple[float, int, str]]:
    """(time of last use, bytes on disk, path) of each entry; removes abandoned temporary files on the way."""
    found: list[tuple[float, int, str]] = []
    place = folder()
    if place is None:
        return found
    with suppress(OSError, ValueError), os.scandir(place) as files:
        for file in files:
            with suppress(OSError):  # another process may have dropped it
                status = file.stat()
                if file.name.endswith(_SUFFIX):
                    found.append((status.st_mtime, _on_disk(status.st_size), file.path))
                elif file.name.startswith(_TEMPORARY) and time.time() - status.st_mtime > _ABANDONED_SECONDS:
                    os.unlink(file.path)
    return found


def _on_disk(size: int) -> int:
    return -(-size // _BLOCK_BYTES) * _BLOCK_BYTES
