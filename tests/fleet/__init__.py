"""Several web processes, a Redis-protocol server, a Postgres of their own, and what can go wrong between them."""
