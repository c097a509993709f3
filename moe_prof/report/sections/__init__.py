"""Sections of the page, one file each: ``make(material)`` gives its template's context."""
