-- harden: the server ends this session when its client is gone for five seconds, or says nothing for `idle_milliseconds`.
SELECT
    set_config('tcp_keepalives_idle', '2', false),
    set_config('tcp_keepalives_interval', '1', false),
    set_config('tcp_keepalives_count', '3', false),
    set_config('idle_session_timeout', %(idle_milliseconds)s::text, false)
