#!/bin/sh
# Planted: syscall_bound. dd copies byte by byte.
exec dd if=/dev/zero of=/dev/null bs=1 count=2000000
