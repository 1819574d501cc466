"""Replicas of one model with Ray Serve: python ray_serve.py MODEL [MOST].

Then http://127.0.0.1:8000 answers as fovea serve does. A replica is a server of its own, which computes the requests
that it has in common passes. Ray adds replicas while more requests than WAITING wait at each, up to MOST, and takes
them away again. Any replica gives the same answer.
$FOVEA names another command than the package's, $PORT another port.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from ray import serve
from starlette.requests import Request
from starlette.responses import Response

WAITING, AT_ONCE = 4, 64  # requests of a replica
COMMAND = shlex.split(os.environ.get("FOVEA", f"{shlex.quote(sys.executable)} -m fovea"))


@serve.deployment(
    max_ongoing_requests=AT_ONCE,
    ray_actor_options={"num_cpus": 1},
    graceful_shutdown_timeout_s=30,
)
class Replica:
    """A server, and the way to it."""

    def __init__(self, model: str) -> None:
        command = [*COMMAND, "serve", model, "--port", "0", "--threads", "1"]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout is not None
        self.url = self.server.stdout.readline().strip()
        if not self.url:
            raise RuntimeError(f"{shlex.join(command)}: expected the address that it serves, got none")
        self.threads = ThreadPoolExecutor(AT_ONCE)

    def __del__(self) -> None:
        """End the server, which answers first what it has begun."""
        self.server.terminate()
        self.server.wait(30)

    def check_health(self) -> None:
        """Raise where the server does not answer: Ray then starts another replica."""
        urllib.request.urlopen(f"{self.url}/health", timeout=10).close()

    async def __call__(self, request: Request) -> Response:
        """Hand a request on, whole, and its answer back."""
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        kind = request.headers.get("content-type", "application/json")
        asked = urllib.request.Request(
            self.url + path, await request.body() or None, {"Content-Type": kind}, method=request.method
        )
        return await asyncio.get_running_loop().run_in_executor(self.threads, self.answer, asked)

    @staticmethod
    def answer(asked: urllib.request.Request) -> Response:
        """Ask the server; what it refuses is an answer too."""
        try:
            got = urllib.request.urlopen(asked)
        except urllib.error.HTTPError as error:
            got = error
        with got:
            return Response(got.read(), got.status, media_type=got.headers["Content-Type"])


def application(model: str, most: int) -> serve.Application:
    """Replicas of the model, one at least and `most` at most."""
    scaling = {
        "min_replicas": 1,
        "max_replicas": most,
        "target_ongoing_requests": WAITING,
        "upscale_delay_s": 2,
        "downscale_delay_s": 60,
    }
    return Replica.options(autoscaling_config=scaling).bind(os.path.abspath(model))


if __name__ == "__main__":
    serve.start(http_options={"port": int(os.environ.get("PORT", "8000"))})
    serve.run(application(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count() or 1), blocking=True)
