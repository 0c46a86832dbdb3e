"""Transforms: functions from jaxpr to jaxpr, one a file, and the primitives that they leave in the program."""
