"""config: reading, updating, overriding by thread, the trace key, the environment."""

import os
import subprocess
import sys
import threading

import pytest

from funcml.core import config as settings
from funcml.core.config import FLAGS, config


def in_thread(read):
    """What `read()` gives in a thread of its own."""
    found = []
    thread = threading.Thread(target=lambda: found.append(read()))
    thread.start()
    thread.join()
    return found[0]


@pytest.fixture(autouse=True)
def restored():
    before = config.values()
    yield
    assert not any(config._open.values()), "a test left an override open"
    for name, value in before.items():
        config.update(name, value)


def test_update_is_seen_by_every_thread_and_takes_the_jax_spelling():
    config.update("jax_enable_x64", True)
    assert config.enable_x64 is True and config.jax_enable_x64 is True
    assert in_thread(lambda: config.enable_x64) is True
    config.update("enable_x64", False)
    assert config.enable_x64 is False and in_thread(lambda: config.enable_x64) is False


def test_override_holds_in_its_thread_and_block_only():
    with settings.enable_x64(True):
        assert config.enable_x64 is True
        assert in_thread(lambda: config.enable_x64) is False
        with settings.enable_x64(False), settings.disable_jit():
            assert config.enable_x64 is False and config.disable_jit is True
        assert config.enable_x64 is True and config.disable_jit is False
    assert config.enable_x64 is False


def test_override_ends_with_an_exception():
    with pytest.raises(KeyError), settings.debug_nans(True):
        raise KeyError
    assert config.debug_nans is False


def test_override_as_decorator_may_recurse():
    @settings.enable_x64(True)
    def depth(n):
        assert config.enable_x64
        return n if n == 0 else 1 + depth(n - 1)

    assert depth(3) == 3 and config.enable_x64 is False


def test_update_inside_an_override_waits_for_its_end():
    with settings.default_matmul_precision("high"):
        config.update("default_matmul_precision", "highest")
        assert config.default_matmul_precision == "high"
        assert in_thread(lambda: config.default_matmul_precision) == "highest"
    assert config.default_matmul_precision == "highest"


def test_overlapping_overrides_of_two_threads():
    entered, leave = threading.Event(), threading.Event()
    seen = []

    def other():
        with settings.eager_miss_limit(3):
            entered.set()
            leave.wait(10)
            seen.append(config.eager_miss_limit)
        seen.append(config.eager_miss_limit)

    thread = threading.Thread(target=other)
    with settings.eager_miss_limit(5):
        thread.start()
        assert entered.wait(10) and config.eager_miss_limit == 5
    assert config.eager_miss_limit == 8  # the other thread's override is still open
    leave.set()
    thread.join()
    assert seen == [3, 8] and config.eager_miss_limit == 8


def test_many_threads_see_their_own_values():
    wrong = []

    def work(mine):
        for i in range(300):
            with settings.eager_miss_limit(mine):
                if config.eager_miss_limit != mine:
                    wrong.append((mine, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert wrong == [] and config.eager_miss_limit == 8


def test_trace_key_tells_the_traced_flags_apart():
    base = config.trace_key()
    other_values = {"enable_x64": True, "numpy_dtype_promotion": "strict", "numpy_rank_promotion": "raise",
                    "default_matmul_precision": "high", "debug_nans": True, "debug_infs": True, "disable_jit": True,
                    "default_prng_impl": "rbg", "random_seed_offset": 3}
    assert set(other_values) == {name for name, flag in FLAGS.items() if flag.traced}
    keys = {base}
    for name, value in other_values.items():
        with FLAGS[name](value):
            overridden = config.trace_key()
        config.update(name, value)
        assert config.trace_key() == overridden  # a value counts, not where it was set
        config.update(name, FLAGS[name].default)
        keys.add(overridden)
    assert len(keys) == 1 + len(other_values)
    assert config.trace_key() == base and hash(base) == hash(config.trace_key())


def test_trace_key_is_the_same_object_until_something_changes():
    assert config.trace_key() is config.trace_key()
    with settings.enable_x64(True):
        assert config.trace_key() is config.trace_key()
    with settings.source_lines(False):
        before = config.trace_key()
    assert before is config.trace_key()


def test_trace_key_under_an_override_sees_an_update_from_another_thread():
    with settings.enable_x64(True):
        before = config.trace_key()
        in_thread(lambda: config.update("debug_nans", True))
        assert config.trace_key() != before
        in_thread(lambda: config.update("debug_nans", False))
        assert config.trace_key() == before


def test_values_lists_every_flag_as_this_thread_sees_it():
    with settings.explain(True):
        assert config.values() == {name: getattr(config, name) for name in FLAGS}
        assert config.values()["explain"] is True


@pytest.mark.parametrize("reach", [
    lambda: config.enable_x46,
    lambda: config.update("enable_x46", True),
    lambda: config.update("jax_enable_x46", True),
    lambda: setattr(config, "enable_x46", True),
])
def test_unknown_flag_names_near_ones(reach):
    with pytest.raises(AttributeError, match="no flag '(jax_)?enable_x46'; there is enable_x64"):
        reach()


def test_flag_is_not_assignable():
    with pytest.raises(AttributeError, match=r'config.update\("enable_x64", True\)'):
        config.enable_x64 = True
    assert config.enable_x64 is False


@pytest.mark.parametrize("name, value, error, words", [
    ("enable_x64", 1, TypeError, "takes True or False; got 1 of type int"),
    ("enable_x64", None, TypeError, "takes True or False; got None"),
    ("numpy_rank_promotion", "alow", ValueError, "takes 'allow', 'warn', 'raise'; got 'alow'"),
    ("default_matmul_precision", "fast", ValueError, "'highest'.*, None; got 'fast'"),
    ("disk_cache_max_bytes", -1, ValueError, "takes an int >= 0; got -1"),
    ("disk_cache_max_bytes", True, TypeError, "takes an int >= 0; got True of type bool"),
    ("disk_cache_dir", 3, TypeError, "takes a path, None; got 3"),
])
def test_bad_values(name, value, error, words):
    before = getattr(config, name)
    with pytest.raises(error, match=words):
        config.update(name, value)
    with pytest.raises(error, match=words):
        FLAGS[name](value)
    assert getattr(config, name) == before


def test_path_flag_takes_a_path(tmp_path):
    config.update("disk_cache_dir", tmp_path)
    assert config.disk_cache_dir == str(tmp_path)
    config.update("disk_cache_dir", None)
    assert config.disk_cache_dir is None


def read_in_process(code, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("FUNCML_")} | environment
    return subprocess.run([sys.executable, "-c", f"from funcml.core.config import config; {code}"],
                          env=env, capture_output=True, text=True)


def test_environment():
    names = "enable_x64", "disk_cache", "disk_cache_max_bytes", "default_matmul_precision"
    code = f"print(*map(config.values().get, {names}))"
    assert read_in_process(code).stdout.split() == ["False", "True", str(2 * 1024**3), "None"]
    done = read_in_process(code, FUNCML_ENABLE_X64="1", FUNCML_DISK_CACHE="off",
                           FUNCML_DISK_CACHE_MAX_BYTES="5", FUNCML_DEFAULT_MATMUL_PRECISION="high")
    assert done.stdout.split() == ["True", "False", "5", "high"]


@pytest.mark.parametrize("name, text, words", [
    ("FUNCML_ENABLE_X64", "maybe", "FUNCML_ENABLE_X64='maybe': enable_x64 takes one of 1, true"),
    ("FUNCML_EAGER_MISS_LIMIT", "-2", "FUNCML_EAGER_MISS_LIMIT='-2': eager_miss_limit takes an int >= 0"),
    ("FUNCML_TRACEBACK_FILTERING", "auto", "takes 'on', 'off'"),
])
def test_nonsense_in_the_environment_is_named(monkeypatch, name, text, words):
    monkeypatch.setenv(name, text)
    with pytest.raises(ValueError, match=words):
        FLAGS[name.removeprefix("FUNCML_").lower()].from_env()


def test_imports_only_the_standard_library():
    code = f"import runpy, sys; runpy.run_path({settings.__file__!r}); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_every_flag_is_documented_and_keeps_its_default():
    for flag in FLAGS.values():
        assert flag.__doc__ and flag.__doc__.endswith(".")
        assert flag.checked(flag.default) == flag.default
        assert getattr(settings, flag.name) is flag


def test_x64_under_its_other_name():
    with settings.enable_x64(True):
        assert config.x64_enabled
    assert not config.x64_enabled
