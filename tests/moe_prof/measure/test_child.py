"""A worker process that can be stopped between its turns."""

from __future__ import annotations

import pytest

from moe_prof.measure.child import Child


def test_a_paused_child_answers_when_it_is_resumed(tmp_path):
    """What is sent meanwhile waits; nothing is lost."""
    with Child("tests.moe_prof.measure.echo", tmp_path / "log") as child:
        child.send({"event": "turn", "number": 1})
        assert child.read(60.0) == {"event": "turn", "number": 1}
        child.pause()
        child.send({"event": "turn", "number": 2})
        with pytest.raises(TimeoutError):
            child.read(0.3)
        child.resume()
        assert child.read(60.0) == {"event": "turn", "number": 2}


def test_a_paused_child_can_be_killed(tmp_path):
    """Leaving the block ends it, stopped or not; a second pause finds nobody and says nothing."""
    with Child("tests.moe_prof.measure.echo", tmp_path / "log") as child:
        child.pause()
    assert child.returncode == -9
    child.pause()
    child.resume()
