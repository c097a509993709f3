"""Analysis: pure functions from figures to figures; nothing here measures or prints."""
