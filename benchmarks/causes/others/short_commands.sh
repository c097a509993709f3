#!/bin/sh
# Planted: syscall_bound, page_fault_bound. Starts a program again and again.
i=0
while [ $i -lt 1500 ]; do
    /bin/true
    i=$((i + 1))
done
