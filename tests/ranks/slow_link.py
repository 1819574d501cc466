"""Links of a given delay and rate between network namespaces, by this process: for kernels that have no netem.

    slow_link.py MICROSECONDS MBIT SUBNET NAMESPACE...     device "slow" of namespace i is SUBNET.(i + 1); ends with its input

A packet leaves when its namespace's link is free, takes the link for its bits, and arrives so many microseconds later.
"""
import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys
import threading
import time

MTU = 9000
TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET, PR_SET_TIMERSLACK = 0x400454CA, 1, 0x1000, 0x40000000, 29


def open_device(libc, name, address):
    with open(f"/run/netns/{name}") as namespace:
        if libc.setns(namespace.fileno(), CLONE_NEWNET):
            raise OSError(f"{name}: cannot be entered")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"slow", IFF_TUN | IFF_NO_PI))
    for arguments in (["addr", "add", f"{address}/24", "dev", "slow"], ["link", "set", "slow", "mtu", str(MTU), "up"]):
        subprocess.run(["ip", *arguments], check=True)
    return device


def carry(devices, delay, seconds_per_byte):
    """Packets from each device to the one that they are for, which the last byte of the address names."""
    free_at = dict.fromkeys(devices, 0.0)
    under_way = {device: [] for device in devices}  # by sender, in order: when it arrives, at which device, what
    while True:
        waiting = [queue[0][0] for queue in under_way.values() if queue]
        timeout = max(0.0, min(waiting) - time.monotonic()) if waiting else None
        ready = select.select(devices, [], [], timeout)[0]
        now = time.monotonic()
        for device in ready:
            packet = os.read(device, MTU + 100)
            to = packet[19] - 1 if packet[0] >> 4 == 4 else -1
            if 0 <= to < len(devices):
                free_at[device] = max(now, free_at[device]) + len(packet) * seconds_per_byte
                under_way[device].append((free_at[device] + delay, devices[to], packet))
        now = time.monotonic()
        for queue in under_way.values():
            while queue and queue[0][0] <= now:
                os.write(queue[0][1], queue.pop(0)[2])


if __name__ == "__main__":
    microseconds, mbit, subnet, *names = sys.argv[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_TIMERSLACK, 1000)
    devices = [open_device(libc, name, f"{subnet}.{i + 1}") for i, name in enumerate(names)]
    print("ready", flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    carry(devices, float(microseconds) / 1e6, 8 / float(mbit) / 1e6)
