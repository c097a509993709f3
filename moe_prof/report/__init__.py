"""One HTML page from saved sessions: opens offline, in light and dark, on a phone and in print."""

from moe_prof.report.material import Material, read_material
from moe_prof.report.page import SECTIONS, Page, render

__all__ = ["SECTIONS", "Material", "Page", "read_material", "render"]
