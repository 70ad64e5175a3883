"""From events to what people read: log lines and metrics."""
