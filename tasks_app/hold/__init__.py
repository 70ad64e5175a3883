"""The wait itself: how long, for whom, and what ends it."""
