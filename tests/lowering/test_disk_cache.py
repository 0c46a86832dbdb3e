"""The disk cache: what is put is found, what is spoilt is a miss, the size is bounded, writers may race."""

import os
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from funcml.core.config import config
from funcml.lowering import disk_cache, pjrt

SIN = """module @test { func.func public @main(%a: tensor<4xf64>) -> tensor<4xf64> {
  %0 = stablehlo.sine %a : tensor<4xf64>
  return %0 : tensor<4xf64>
} }"""
OUT = (((4,), np.dtype("float64")),)
BLOCK = 4096


@pytest.fixture(autouse=True)
def place(tmp_path):
    """A folder of its own for each test, not there yet."""
    config.update("disk_cache_dir", tmp_path / "programs")
    return tmp_path / "programs"


def names(n: int) -> list[str]:
    return [disk_cache.key(str(i)) for i in range(n)]


def use(name: str, seconds_ago: float, place) -> None:
    then = time.time() - seconds_ago
    os.utime(place / f"{name}.xla", (then, then))


def test_what_is_put_is_found():
    (name,) = names(1)
    assert disk_cache.get(name) is None
    for blob in (b"", b"abc", os.urandom(100_000)):
        disk_cache.put(name, blob)
        assert disk_cache.get(name) == blob


def test_key_depends_on_every_part_and_on_where_it_ends():
    parts = [("ab", "c"), ("a", "bc"), ("abc",), ("ab", "c", ""), ("é",)]
    assert len({disk_cache.key(*p) for p in parts}) == 5
    assert disk_cache.key("ab", "c") == disk_cache.key("ab", "c")


@pytest.mark.parametrize("spoil", [
    lambda stored: stored[:-1],
    lambda stored: stored[:10],
    lambda stored: b"",
    lambda stored: stored[:-1] + bytes([stored[-1] ^ 1]),
    lambda stored: b"X" + stored[1:],
    lambda stored: stored + b"X",
], ids=["truncated", "head only", "empty", "bit flipped", "other format", "longer"])
def test_a_spoilt_file_is_a_miss_and_goes(spoil, place):
    (name,) = names(1)
    disk_cache.put(name, b"blob" * 100)
    file = place / f"{name}.xla"
    file.write_bytes(spoil(file.read_bytes()))
    assert disk_cache.get(name) is None
    assert not file.exists()


def test_a_folder_that_cannot_be_is_no_error(tmp_path):
    (name,) = names(1)
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", "null\0byte", "/proc/nowhere"):
        config.update("disk_cache_dir", folder)
        disk_cache.put(name, b"blob")
        assert disk_cache.get(name) is None
        disk_cache.discard(name)
        disk_cache.evict()


def test_an_entry_that_is_a_folder_is_a_miss(place):
    (name,) = names(1)
    (place / f"{name}.xla").mkdir(parents=True)
    disk_cache.put(name, b"blob")
    assert disk_cache.get(name) is None


def test_no_home_means_no_cache(monkeypatch):
    config.update("disk_cache_dir", None)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/path")
    monkeypatch.setattr(sys, "platform", "linux")
    assert disk_cache.folder() is None
    (name,) = names(1)
    disk_cache.put(name, b"blob")
    assert disk_cache.get(name) is None
    disk_cache.evict()


def test_default_folder(monkeypatch, tmp_path):
    config.update("disk_cache_dir", None)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert disk_cache.folder() == str(tmp_path / ".cache" / "funcml")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert disk_cache.folder() == str(tmp_path / "xdg" / "funcml")


def test_only_the_owner_may_write(place):
    disk_cache.put(*names(1), b"blob")
    assert place.stat().st_mode & 0o077 == 0


def test_evict_drops_what_was_unused_longest(place):
    config.update("disk_cache_max_bytes", 100 * BLOCK)
    kept = names(16)
    for age, name in enumerate(kept):
        disk_cache.put(name, name.encode())
        use(name, 1000 + age, place)
    disk_cache.get(kept[-1])  # now the last one used
    config.update("disk_cache_max_bytes", 8 * BLOCK)
    disk_cache.evict()
    assert {n for n in kept if disk_cache.get(n)} == {*kept[:6], kept[-1]}
    disk_cache.evict()
    assert len(list(place.iterdir())) == 7


def test_size_stays_near_its_bound(place):
    config.update("disk_cache_max_bytes", 32 * BLOCK)
    for name in names(200):
        disk_cache.put(name, name.encode())
        assert len(list(place.iterdir())) <= 32 + 32 // 8 + 1


def test_evict_removes_abandoned_files_only(place):
    disk_cache.put(*names(1), b"blob")
    old, new, foreign = place / "funcml-old", place / "funcml-new", place / "notes.txt"
    for file in (old, new, foreign):
        file.write_text("half")
    long_ago = time.time() - 7200
    os.utime(old, (long_ago, long_ago))
    os.utime(foreign, (long_ago, long_ago))
    disk_cache.evict()
    assert not old.exists() and new.exists() and foreign.exists()


def test_writers_and_readers_may_race(place):
    config.update("disk_cache_max_bytes", 16 * BLOCK)  # so that eviction races too
    shared = names(24)

    def work(n):
        for i in range(100):
            name = shared[(n + i) % len(shared)]
            disk_cache.put(name, name.encode() * 200)
            assert disk_cache.get(name) in (None, name.encode() * 200)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert all(file.name.endswith(".xla") for file in place.iterdir())


# ---- executables


def test_load_or_compile_compiles_once(monkeypatch):
    compiled = []
    real = pjrt.compile
    monkeypatch.setattr(pjrt, "compile", lambda *args: compiled.append(args) or real(*args))
    x = pjrt.put(np.linspace(0, 1, 4))
    for _ in range(3):
        (y,) = disk_cache.load_or_compile(SIN, OUT).run([x])
        np.testing.assert_allclose(pjrt.to_numpy(y), np.sin(np.linspace(0, 1, 4)), rtol=1e-15)
    assert len(compiled) == 1
    disk_cache.load_or_compile(SIN, OUT, options=[("xla_backend_optimization_level", "0")])
    assert len(compiled) == 2
    monkeypatch.setattr(pjrt, "environment_key", lambda device: "another version")
    disk_cache.load_or_compile(SIN, OUT)
    assert len(compiled) == 3


def test_load_or_compile_can_be_turned_off(place):
    config.update("disk_cache", False)
    disk_cache.load_or_compile(SIN, OUT)
    assert not place.exists()


def test_what_the_backend_refuses_is_compiled_again():
    name = disk_cache.key(SIN, pjrt.environment_key(None), "()")
    disk_cache.put(name, b"no executable")
    executable = disk_cache.load_or_compile(SIN, OUT)
    np.testing.assert_array_equal(pjrt.to_numpy(executable.run([pjrt.put(np.zeros(4))])[0]), np.zeros(4))
    assert len(disk_cache.get(name)) > 1000


def test_another_process_finds_it(place):
    executable = disk_cache.load_or_compile(SIN, OUT)
    x = np.linspace(0, 1, 4)
    expected = pjrt.to_numpy(executable.run([pjrt.put(x)])[0])
    program = f"""
        import sys
        import numpy as np
        from funcml.lowering import disk_cache, pjrt
        def compile(*args):
            raise AssertionError("compiled again")
        pjrt.compile = compile
        executable = disk_cache.load_or_compile({SIN!r}, (((4,), np.dtype("float64")),))
        (y,) = executable.run([pjrt.put(np.linspace(0, 1, 4))])
        sys.stdout.write(pjrt.to_numpy(y).tobytes().hex())
    """
    environment = {**os.environ, "FUNCML_DISK_CACHE_DIR": str(place)}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=environment, check=True,
                          capture_output=True, text=True)
    assert bytes.fromhex(done.stdout) == expected.tobytes()
