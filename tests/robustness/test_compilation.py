"""A cache of compiled functions saves time, and nothing fails for want of it."""

import subprocess
import sys
import tempfile

import pytest

from latentdo import compilation

SETTING = 1
scaled = None


def three_times(x):
    return 3 * x


def one_less(x):
    return x - 1


def times_setting(x):
    return SETTING * x


def one_more(x):
    return scaled(x) + 1


def refuse(*_, **__):
    raise PermissionError(13, "Permission denied")


def test_what_was_compiled_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    for found_on_disk in (0, 1):
        compiled = compilation.njit(three_times)
        assert compiled(2) == 6
        assert sum(compiled.stats.cache_hits.values()) == found_on_disk


def test_a_changed_setting_is_noticed_wherever_it_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    for setting in (5, 7, 5):
        monkeypatch.setitem(globals(), "SETTING", setting)
        monkeypatch.setitem(globals(), "scaled", compilation.njit(times_setting))
        assert compilation.njit(one_more)(2) == 2 * setting + 1


def test_a_changed_function_is_noticed_by_those_that_call_it(tmp_path, monkeypatch):
    """Numba looks at the file of a function, which need not be that of what it calls."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    for called, expected in ((three_times, 7), (one_less, 2), (three_times, 7)):
        monkeypatch.setitem(globals(), "scaled", compilation.njit(called))
        assert compilation.njit(one_more)(2) == expected


def test_without_a_folder_to_write_to_functions_are_compiled_all_the_same(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", refuse)  # how Numba asks whether a folder may be written
        compiled = compilation.njit(three_times)
    assert compiled(2) == 6


@pytest.mark.parametrize("name", ["save", "load"])
def test_a_cache_that_fails_later_is_done_without(tmp_path, monkeypatch, name):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(f"numba.core.caching.IndexDataCacheFile.{name}", refuse)
    assert compilation.njit(three_times)(2) == 6


def test_a_cache_that_was_cut_short_is_done_without(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    compilation.njit(three_times)(2)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 2  # an index, and machine code
    for file in files:
        content = file.read_bytes()
        for length in (0, 10, len(content) // 2):
            file.write_bytes(content[:length])
            assert compilation.njit(three_times)(2) == 6
        file.write_bytes(content)


def test_a_read_only_installation_without_a_home_can_be_used():
    """Every module is imported where no folder can be written: all of them reach their functions through one place."""
    program = """
import importlib, pkgutil, tempfile
def refuse(*_, **__): raise PermissionError(13, "Permission denied")
tempfile.TemporaryFile = refuse
import latentdo
for module in pkgutil.walk_packages(latentdo.__path__, "latentdo."):
    if module.name.startswith(("latentdo.model.", "latentdo.solvers.")):
        importlib.import_module(module.name)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
