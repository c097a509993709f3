"""Planted: oversubscribed. Ten processes that calculate, on fewer CPUs."""

import multiprocessing


def work(seed: int) -> int:
    """Keep a CPU busy."""
    x = seed
    for i in range(2_500_000):
        x = (x * 1103515245 + 12345 + i) & 0x7FFFFFFF
    return x


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    team = [context.Process(target=work, args=(n,)) for n in range(10)]
    for one in team:
        one.start()
    for one in team:
        one.join()
