"""A small project that holds requests in memory, to test serving without a database."""
