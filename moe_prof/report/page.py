"""The page: the table of sections, and the template that holds them together.

A section is one row: its identifier, its title, a function from the material to what its template
shows (or to the reason why there is nothing to show), and the template.

The page may load nothing: its content security policy forbids every address, and the script is
allowed by its hash alone, so that no text from a session could run as one.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from moe_prof import __version__
from moe_prof.report.material import Material
from moe_prof.report.parts import Context, Missing
from moe_prof.report.sections import (
    accuracy,
    bounds,
    comparison,
    counters,
    download,
    expert_parallel,
    explanations,
    figures,
    flame,
    functions,
    imported,
    machine,
    phases,
    roofline,
    slots,
    stages,
    summary,
    threads,
    trust,
)
from moe_prof.streams import encodable

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""Characters that HTML has no place for."""
PARTS = "parts.html.j2"


@dataclass(frozen=True, slots=True)
class Section:
    """One row of the table of sections."""

    name: str
    title: str
    make: Callable[[Material], Context | Missing]
    template: str = PARTS


SECTIONS: tuple[Section, ...] = (
    Section("summary", "Summary", summary.make, "summary.html.j2"),
    Section("stages", "Stages", stages.make),
    Section("bounds", "What bounds each stage", bounds.make),
    Section("explanations", "Explanations", explanations.make, "explanations.html.j2"),
    Section("slots", "Issue slots, top-down", slots.make),
    Section("roofline", "Roofline", roofline.make),
    Section("expert_parallel", "Expert parallel", expert_parallel.make),
    Section("comparison", "Comparison of sessions", comparison.make),
    Section("phases", "Phases of the forward", phases.make),
    Section("threads", "Threads: busy and waiting", threads.make),
    Section("counters", "Counters", counters.make),
    Section("functions", "Hot functions", functions.make),
    Section("flame", "Flame graph", flame.make, "flame.html.j2"),
    Section("imported", "Imported figures", imported.make),
    Section("accuracy", "Accuracy of quantization", accuracy.make),
    Section("machine", "Machine and commands", machine.make),
    Section("trust", "Where the figures come from", trust.make),
    Section("figures", "All figures", figures.make, "figures.html.j2"),
    Section("download", "Data", download.make, "download.html.j2"),
)


@dataclass(frozen=True, slots=True)
class Page:
    """A finished page: its text, the sections in it, and those left out with the reason."""

    html: str
    sections: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]


def render(material: Material) -> Page:
    """Make every section that the material allows."""
    made: list[tuple[Section, Context]] = []
    left_out: list[tuple[str, str]] = []
    for section in SECTIONS:
        context = section.make(material)
        if isinstance(context, Missing):
            left_out.append((section.title, context.reason))
        else:
            made.append((section, context))
    environment = _environment()
    bodies = [
        (section, Markup(environment.get_template(section.template).render(context)))
        for section, context in made
    ]
    script = environment.get_template("page.js").render()
    html = environment.get_template("page.html.j2").render(
        title=_title(material),
        sections=bodies,
        left_out=left_out,
        script=Markup(script),
        script_hash=_hash(script),
        version=__version__,
    )
    html = _CONTROL.sub("\ufffd", encodable(html, "utf-8"))
    return Page(html, tuple(section.title for section, _ in made), tuple(left_out))


def _title(material: Material) -> str:
    labels = [source.label for source in material.sources]
    return f"moe_prof report: {', '.join(labels)}"


@cache
def _environment() -> Environment:
    """Templates of this package; everything is escaped."""
    return Environment(
        loader=PackageLoader("moe_prof.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _hash(script: str) -> str:
    """The script's name in the content security policy."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
