"""Memory of results is used again when, and only when, nobody holds the result."""

import numpy as np

from moe_prof.ep.blocks import Blocks


def test_a_held_result_keeps_its_memory():
    """Also by a view of a view."""
    blocks = Blocks()
    first = blocks.empty((100, 10), np.float32)
    first[...] = 1
    part = first[5:].reshape(-1)[3:]
    del first
    second = blocks.empty((100, 10), np.float32)
    second[...] = 2
    assert not np.shares_memory(part, second)
    assert (part == 1).all()


def test_memory_of_a_dropped_result_is_used_again():
    """For another dtype and shape of about that size, not for much smaller ones."""
    blocks = Blocks()
    address = blocks.empty((1000, 10), np.float32).ctypes.data
    again = blocks.empty((39_000,), np.int8)
    assert again.ctypes.data == address
    assert address % 64 == 0
    assert blocks.empty((100,), np.int8).ctypes.data != address


def test_blocks_are_few():
    """The oldest are given up; results that hold them stay whole."""
    blocks = Blocks()
    held = [blocks.empty((100,), np.int32) for _ in range(50)]
    for i, array in enumerate(held):
        array[...] = i
    assert len(blocks._blocks) <= 32
    assert all((array == i).all() for i, array in enumerate(held))


def test_an_empty_result():
    """No bytes at all."""
    assert Blocks().empty((0, 5), np.int8).shape == (0, 5)
