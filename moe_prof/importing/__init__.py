"""Reading profilers' outputs that were brought from elsewhere, by content.

``source`` opens and decodes a file, ``recognise`` finds which tools wrote it (the table of tools is
``kinds``), one module a tool turns its part into tidy rows, ``text_view`` shows them.
"""
