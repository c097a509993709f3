"""What all tests share: the state in which the process is given to them, and emulated CPUs."""

import functools
import signal

import pytest

from tests.emulation import bochs_cpu
from tests.kernels import modelled

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


@pytest.fixture(scope="session")
def emulated_cpu(tmp_path_factory):
    """A CPU with AVX-512-VNNI and AVX-VNNI; one for all, since the emulator is one per process."""
    absence = bochs_cpu.absence()
    if absence:
        pytest.skip(f"no emulated CPU: {absence}")
    return bochs_cpu.Cpu(tmp_path_factory.mktemp("bochs"))


@pytest.fixture(scope="session")
def modelled_library(tmp_path_factory):
    """A path's library (amx_int8, avx_vnni) over a model of what this CPU lacks, built once."""
    if modelled.absence():
        pytest.skip(modelled.absence())
    folder = tmp_path_factory.mktemp("modelled")
    return functools.cache(lambda isa: modelled.build(isa, folder))
