#!/bin/sh
# Planted: syscall_bound. Copies a file byte by byte with dd bs=1: one read and one write system
# call for each byte.
tmp=$(mktemp) || exit 1
trap 'rm -f "$tmp"' EXIT
dd if=/dev/zero of="$tmp" bs=1 count=2500000 2>/dev/null || exit 1
echo "checksum $(cksum <"$tmp")"
