"""The commands, in the order in which ``--help`` names them."""

from moe_prof.commands.base import Command

COMMANDS: tuple[Command, ...] = ()
