"""The commands, in the order in which ``--help`` names them."""

from moe_prof.commands.base import Command
from moe_prof.commands.bench import Bench
from moe_prof.commands.compare import CompareCommand
from moe_prof.commands.counters import CountersCommand
from moe_prof.commands.doctor import Doctor
from moe_prof.commands.ep import EpCommand
from moe_prof.commands.explain import ExplainCommand
from moe_prof.commands.hotspots import HotspotsCommand
from moe_prof.commands.import_ import ImportCommand
from moe_prof.commands.list import List
from moe_prof.commands.report import ReportCommand
from moe_prof.commands.roofline import RooflineCommand
from moe_prof.commands.topdown import Topdown

COMMANDS: tuple[Command, ...] = (
    Topdown(), CountersCommand(), HotspotsCommand(), Bench(), CompareCommand(), RooflineCommand(),
    EpCommand(), ExplainCommand(), ReportCommand(), ImportCommand(), List(), Doctor(),
)  # fmt: skip
