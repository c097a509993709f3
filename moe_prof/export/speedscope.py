"""The JSON of speedscope.app: one sampled profile a thread over a shared table of frames.

Source: https://www.speedscope.app/file-format-schema.json.
"""

from __future__ import annotations

import json

from moe_prof import __version__
from moe_prof.collectors.stacks import Profile
from moe_prof.export.viewing import by_functions, thread_title, threads

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write(profile: Profile, title: str) -> str:
    """The text of the file."""
    frames: dict[tuple[str, str], int] = {}
    profiles = []
    for name, stacks in threads(by_functions(profile)):
        samples = [
            [frames.setdefault((f.function, f.module_name), len(frames)) for f in stack.frames]
            for stack in stacks
        ]
        weights = [stack.weight for stack in stacks]
        profiles.append(
            {
                "type": "sampled",
                "name": thread_title(name),
                "unit": "seconds" if profile.unit == "s" else "none",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        )
    document = {
        "$schema": SCHEMA,
        "name": title,
        "exporter": f"moe-prof {__version__}",
        "activeProfileIndex": 0,
        "shared": {
            "frames": [
                {"name": function, **({"file": module} if module else {})}
                for function, module in frames
            ]
        },
        "profiles": profiles,
    }
    return json.dumps(document) + "\n"
