-- favour_indexes: until this session ends, statements are planned by their indexes and none is compiled.
SELECT
    set_config('enable_seqscan', 'off', false),
    set_config('jit', 'off', false)
