"""What our templates of the admin need of Python."""
