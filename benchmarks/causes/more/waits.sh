# Planted: unknown. A script that only waits.
sleep 1.5
