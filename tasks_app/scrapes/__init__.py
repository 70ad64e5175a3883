"""What a web process answers to a scrape: its own figures, and those of the processes that it shares a port with."""
