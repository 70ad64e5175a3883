"""`asyncpoll` at the prompt: submit tasks and wait for them, with nothing of Django."""
