"""What all tests share: the state in which the process is given to them."""

import signal

import pytest

DEFAULTS = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}


@pytest.fixture(scope="session", autouse=True)
def signals_are_heard():
    """A shell's background job and nohup start with signals ignored; the tests send them."""
    found = {number: signal.getsignal(number) for number in DEFAULTS}
    for number, handler in DEFAULTS.items():
        if found[number] == signal.SIG_IGN:
            signal.signal(number, handler)
    yield
    for number, handler in found.items():
        signal.signal(number, handler)
