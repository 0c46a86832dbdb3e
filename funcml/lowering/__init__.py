"""The backend: StableHLO text, PJRT, arrays, executables and their caches."""
