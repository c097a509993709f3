"""Planted: imbalance. Two processes, one with four times the work of the other."""

import multiprocessing


def work(count: int) -> int:
    """Keep a CPU busy."""
    x = 1
    for i in range(count):
        x = (x * 1103515245 + 12345 + i) & 0x7FFFFFFF
    return x


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    team = [context.Process(target=work, args=(n * 5_000_000,)) for n in (1, 4)]
    for one in team:
        one.start()
    for one in team:
        one.join()
