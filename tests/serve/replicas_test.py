"""Three equal servers behind HAProxy, by examples/replicas/haproxy.cfg. Skipped where there is no haproxy.

    replicas_test.py FOVEA EXAMPLES_FOLDER
"""
import concurrent.futures
import os
import shutil
import socket
import subprocess
import sys
import time
import unittest

from client import CHAT, Client, Server, chat

FOVEA, EXAMPLES = sys.argv[1:3]
CONFIGURATION = os.path.join(EXAMPLES, "replicas", "haproxy.cfg")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Replicas(unittest.TestCase):
    def setUp(self):
        self.servers = [Server(FOVEA, "--threads", "1", "--context", "128") for _ in range(3)]
        self.port = free_port()
        places = {f"REPLICA_{i}": f"127.0.0.1:{server.port}" for i, server in enumerate(self.servers, 1)}
        environment = {**os.environ, **places, "LISTEN": f"127.0.0.1:{self.port}"}
        subprocess.run(["haproxy", "-c", "-f", CONFIGURATION], env=environment, check=True, capture_output=True)
        self.balancer = subprocess.Popen(["haproxy", "-db", "-f", CONFIGURATION], env=environment, stderr=subprocess.DEVNULL)
        self.client = Client(self.port)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                if self.client.request("GET", "/health")[0] == 200:
                    return
            except OSError:
                time.sleep(0.05)
        self.fail("the balancer did not start")

    def tearDown(self):
        self.balancer.terminate()
        self.balancer.wait(30)
        for server in self.servers:
            server.__exit__()

    def answers(self, client, texts):
        def ask(text):
            got = client.post(CHAT, chat(text, max_tokens=24))
            return got["choices"][0]["message"]["content"]

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return list(pool.map(ask, texts))

    def n_prompt_tokens(self):
        """Tokens of prompts that each server has read."""
        return [server.metric("prompt_tokens_total") for server in self.servers]

    def test_any_gives_the_same(self):
        texts = [f"turn {way} the {thing}" for way in ("on", "off") for thing in ("lamp", "radio", "fan", "heater", "tv")]
        want = self.answers(self.servers[0], texts)
        for server in self.servers[1:]:
            self.assertEqual(self.answers(server, texts), want)
        before = self.n_prompt_tokens()
        self.assertEqual(self.answers(self.client, texts), want)
        self.assertGreater(sum(now > then for now, then in zip(self.n_prompt_tokens(), before)), 1)
        # One is lost, and its requests go to the others.
        self.servers[1].process.kill()
        self.servers[1].process.wait()
        self.assertEqual(self.answers(self.client, texts), want)

    def test_what_begins_alike_goes_to_one(self):
        before = self.n_prompt_tokens()
        for i in range(6):
            self.client.post(CHAT, {"user": "somebody" * 64, **chat(f"turn on lamp {i}", max_tokens=1)})
        self.assertEqual(sum(now > then for now, then in zip(self.n_prompt_tokens(), before)), 1)


if __name__ == "__main__":
    if not shutil.which("haproxy"):
        print("skipped: no haproxy")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
