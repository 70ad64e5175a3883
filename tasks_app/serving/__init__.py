"""From a socket to a view and back: the ASGI handler that holds requests cheaply, the drain, and the `serve` command."""
