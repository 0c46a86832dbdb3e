"""All lowering rules: importing this module registers them."""

import importlib
import pkgutil

import funcml.lowering as _package

for _module in pkgutil.iter_modules(_package.__path__):
    if _module.name.startswith("rules_"):
        importlib.import_module(f"funcml.lowering.{_module.name}")
