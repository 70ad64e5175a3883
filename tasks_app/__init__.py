"""A database-backed task registry whose tasks can be waited for over plain HTTP."""
