-- new_epoch: a number larger than any epoch before it.
SELECT nextval('asyncpoll_epoch')
