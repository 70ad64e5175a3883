"""A project that uses asyncpoll, as small as can be measured."""
