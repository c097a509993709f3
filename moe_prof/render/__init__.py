"""Rendering: from tidy rows to something that can be shown; nothing here measures."""
