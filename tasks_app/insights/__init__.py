"""How long tasks take, and what follows from it: arithmetic over measured durations, without a database or a clock."""
