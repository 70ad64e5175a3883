"""Measurements that anyone can rerun: `python -m bench --list`."""
