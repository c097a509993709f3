"""What bounds any program: watching it run, sampling it, counting it, judging what was seen."""
