"""Primitives that hold programs and choose among them or run them several times; read `cond`, `scan`, `repeat`, `while_loop`."""
