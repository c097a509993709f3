"""The ``topdown`` command's parts: measured by counters where there are any, else modelled."""
