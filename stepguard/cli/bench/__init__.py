"""``stepguard bench``."""
