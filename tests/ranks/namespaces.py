"""Network namespaces in place of machines: each has an address of its own, and a link of a given rate and delay to the others.

    namespaces.py N [--link MICROSECONDS,MBIT] -- COMMAND...     runs it with $MPIRUN, which starts a rank in each

Needs root and iproute2. Links are made by netem, or without it by slow_link.py.
"""
import argparse
import contextlib
import os
import shlex
import subprocess
import sys
import tempfile

SUBNET, SLOW_SUBNET = "10.213.7", "10.213.8"


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def name_of(process):
    try:
        with open(f"/proc/{process}/comm") as file:
            return file.read()
    except OSError:
        return ""


class Namespaces:
    """n of them, joined by a bridge; MPI's processes start in them by `mpirun`, a list of arguments."""

    def __init__(self, n, link=None):
        self.names = [f"fovea{os.getpid()}_{i}" for i in range(n)]
        self.bridge = f"fv{os.getpid()}"
        self.stack = contextlib.ExitStack()
        try:
            self._make(link)
        except BaseException:
            self.close()
            raise

    def _make(self, link):
        ip("link", "add", self.bridge, "type", "bridge")
        self.stack.callback(subprocess.run, ["ip", "link", "del", self.bridge], capture_output=True)
        ip("addr", "add", f"{SUBNET}.254/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")
        for i, name in enumerate(self.names):
            ip("netns", "add", name)
            self.stack.callback(subprocess.run, ["ip", "netns", "del", name], capture_output=True)
            outside = self.outside(i)
            ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
            # With its namespace it would go some time later.
            self.stack.callback(subprocess.run, ["ip", "link", "del", outside], capture_output=True)
            ip("link", "set", outside, "master", self.bridge, "up")
            ip("-n", name, "addr", "add", f"{SUBNET}.{i + 1}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                ip("-n", name, "link", "set", device, "up")
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        agent = os.path.join(folder, "agent")  # in ssh's place: agent ADDRESS COMMAND...
        with open(agent, "w") as file:
            file.write('#!/bin/bash\naddress=$1; shift\n'
                       f'exec ip netns exec fovea{os.getpid()}_$((${{address##*.}} - 1)) /bin/sh -c "$*"\n')
        os.chmod(agent, 0o755)
        hosts = ",".join(f"{SUBNET}.{i + 1}:1" for i in range(len(self.names)))
        network = f"{SUBNET}.0/24"
        data = self._slow(*link) if link else network
        # Its launcher looks after its daemons only if it is told to, see docs/machines.md.
        for name, value in (("time", 2), ("intvl", 1), ("probes", 3)):
            os.environ[f"OMPI_MCA_oob_tcp_keepalive_{name}"] = str(value)
        # Open MPI 4's daemons map the machine's topology into the largest hole of their addresses, and at times fall into it.
        os.environ["OMPI_MCA_rtc_hwloc_vmhole"] = "none"
        self.mpirun = ["mpirun", "--allow-run-as-root", "-H", hosts, "--mca", "plm_rsh_agent", agent, "--mca", "btl",
                       "tcp,self", "--mca", "btl_tcp_if_include", data, "--mca", "oob_tcp_if_include", network, "--mca",
                       "pml", "ob1", "--bind-to", "none"]

    def _slow(self, microseconds, mbit):
        """The network that MPI's messages go by, with such links."""
        for name in self.names:
            how = ["netem", "delay", f"{microseconds:g}us", "rate", f"{mbit:g}mbit"]
            if subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "eth0", "root", *how],
                              capture_output=True).returncode:
                break
        else:
            return f"{SUBNET}.0/24"
        relay = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slow_link.py")
        process = subprocess.Popen([sys.executable, relay, str(microseconds), str(mbit), SLOW_SUBNET, *self.names],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.stack.callback(process.communicate)
        if process.stdout.readline() != b"ready\n":
            raise OSError("slow_link.py: expected links, got none")
        return f"{SLOW_SUBNET}.0/24"

    def address(self, i):
        return f"{SUBNET}.{i + 1}"

    def outside(self, i):
        return f"{self.bridge}_{i}"

    def cut(self, i):
        ip("link", "set", self.outside(i), "down")

    def ranks(self, i):
        """Processes of the program in a namespace."""
        found = subprocess.run(["ip", "netns", "pids", self.names[i]], capture_output=True, text=True).stdout.split()
        return [pid for pid in found if name_of(pid).startswith("fovea")]

    def close(self):
        self.stack.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def can_have_namespaces():
    try:
        with Namespaces(1):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("n", type=int)
    parser.add_argument("--link", type=lambda text: tuple(map(float, text.split(","))))
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    with Namespaces(options.n, options.link) as namespaces:
        environment = {**os.environ, "MPIRUN": shlex.join(namespaces.mpirun)}
        sys.exit(subprocess.run(options.command, env=environment).returncode)
