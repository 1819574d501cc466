"""A server under test, and a client made of sockets and http.client: what the suite and the soak share."""
import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time

CHAT, COMPLETE = "/v1/chat/completions", "/v1/completions"


def chat(text, **fields):
    return {"model": "demo", "messages": [{"role": "user", "content": text}], **fields}


def complete(text, **fields):
    return {"model": "demo", "prompt": text + "\n", "max_tokens": 60, **fields}


class Client:
    """What asks a port of 127.0.0.1."""

    def __init__(self, port):
        self.port = port

    def request(self, method, path, body=None, headers=None, timeout=120):
        """Status, headers and bytes of an answer. A body that is no bytes goes as JSON."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def post(self, path, body, headers=None, want=200):
        """The JSON of an answer, which must have this status."""
        status, self.headers, answer = self.request("POST", path, body, headers)
        assert status == want, f"{path}: expected {want}, got {status}: {answer[:400]!r}"
        return json.loads(answer)

    def get(self, path, want=200):
        status, self.headers, answer = self.request("GET", path)
        assert status == want, f"{path}: expected {want}, got {status}: {answer[:400]!r}"
        return answer

    def metric(self, *names):
        """The sum of metrics over their labels, all at one moment."""
        total = 0
        for line in self.get("/metrics").decode().splitlines():
            if any(line.startswith(("fovea_" + name + "{", "fovea_" + name + " ")) for name in names):
                total += float(line.split()[-1])
        return total

    def raw(self, data=b"", timeout=30):
        """A connection on which these bytes were sent."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout)
        connection.sendall(data)
        return connection

    def stream(self, path, body, headers=None):
        """The events of a streamed answer as they come."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("POST", path, json.dumps({**body, "stream": True}), headers or {})
        response = connection.getresponse()
        assert response.status == 200, f"{path}: expected 200, got {response.status}: {response.read()[:400]!r}"
        for line in response:
            line = line.strip()
            if line.startswith(b"data: "):
                line = line[6:]
            if line and line != b"[DONE]" and not line.startswith(b":"):  # a comment
                yield json.loads(line)
        connection.close()


class Server(Client):
    """`fovea serve` on a free port of 127.0.0.1, ended with the block."""

    def __init__(self, fovea, *arguments, port=0, folder=None):
        self.stderr = tempfile.TemporaryFile()
        self.process = subprocess.Popen([fovea, "serve", *arguments, "--port", str(port), "--json"],
                                        stdout=subprocess.PIPE, stderr=self.stderr, cwd=folder)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the server ended: " + self.errors())
        self.figures = json.loads(line)
        super().__init__(self.figures["port"])
        self.url = self.figures["url"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()

    def stop(self, how=signal.SIGTERM, seconds=60):
        """Ends the server; returns its exit status."""
        self.process.send_signal(how)
        return self.process.wait(seconds)

    def errors(self):
        self.stderr.seek(0)
        return self.stderr.read().decode()

    def rss(self):
        """Resident bytes."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self):
        """Of processors, since it started."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def http_bytes(path, body, headers=""):
    """A POST as it goes over the wire."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def read_all(connection):
    """What comes until the other side closes."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def at_once(calls):
    """Runs the calls in threads of their own; their results in order, or the first exception."""
    results = [None] * len(calls)

    def run(i):
        try:
            results[i] = calls[i]()
        except BaseException as error:  # raised again below
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def wait_until(condition, seconds=20):
    """Whether the condition holds within the time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()
