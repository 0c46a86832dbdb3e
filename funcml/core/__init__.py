"""The language: avals, jaxprs, the tracer. Imports NumPy and nothing else of funcml."""
