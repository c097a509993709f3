"""Ctrl-C at a known moment of a measurement, however slow the machine is."""

import os
import signal

from moe_prof.measure.records import Record


def interrupt_at_sample(monkeypatch, variant):
    """Send SIGINT to this process when the first sample of a variant arrives."""
    sampled = Record.sampled

    def interrupting(record, event, process):
        first = not record.samples_s
        sampled(record, event, process)
        if first and record.job.variant == variant:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Record, "sampled", interrupting)
