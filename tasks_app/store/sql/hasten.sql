-- hasten: until this transaction ends, a statement ends after `milliseconds`, and is planned to take the first rows of an index.
SELECT
    set_config('statement_timeout', %(milliseconds)s::text, true),
    set_config('enable_bitmapscan', 'off', true),
    set_config('enable_seqscan', 'off', true),
    set_config('enable_sort', 'off', true)
