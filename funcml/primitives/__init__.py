"""First-order operations, each with all its mathematics: types, derivatives, batching."""
