"""What the server refuses, and where its limits are; run by server_test.py."""
import json
import re
import signal
import subprocess
import tempfile
import time
import unittest

from cases import CHAT, COMPLETE, FOVEA, WithServer, chat, complete
from client import Server, at_once, http_bytes, read_all, wait_until


class Refusals(WithServer):
    arguments = ["--context", "128", "--body", "64K"]

    def test_requests_that_say_the_wrong_thing(self):
        many_keys = json.dumps({f"k{i}": 0 for i in range(5000)}).encode()
        wrong = [(many_keys, "4096 keys"), (b"", "JSON"), (b"{", "JSON"), (b"[]", "an object"), (b"\xff", "JSON"), (b"[" * 5000, "100"),
                 (chat("x", temperature=-1), "temperature"), (chat("x", temperature="hot"), "temperature"),
                 (chat("x", n=0), "n: expected 1 to 32"), (chat("x", top_p=2), "top_p"), (chat("x", seed=1.5), "seed"),
                 (chat("x", max_tokens=0), "max_tokens"), (chat("x", stop=["a"] * 20), "stop"),
                 (chat("x", stop=[1]), "stop"), (chat("x", logit_bias={"1": 500}), "logit_bias.1"),
                 (chat("x", logit_bias={"cat": 5}), "token ids"), (chat("x", logit_bias={"999999": 5}), "ids below"),
                 (chat("x", logit_bias=[5]), "logit_bias"), (chat("x", frequency_penalty="1"), "frequency_penalty"),
                 (chat("x", presence_penalty=1e9), "presence_penalty"), ({"model": "demo"}, "messages"),
                 ({"model": "demo", "messages": []}, "messages"), ({"model": "demo", "messages": [3]}, "messages[0]"),
                 ({"model": "demo", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "text"),
                 (chat("word " * 500), "tokens"), (chat("x", tools=[{}]), "tools[0]"),
                 (chat("x", tool_choice="required"), "tool_choice"), (chat("x", response_format={"type": "x"}), "type")]
        for body, words in wrong:
            error = self.server.post(CHAT, body, want=400)["error"]
            self.assertIn(words, error["message"])
            self.assertEqual(error["type"], "invalid_request_error")
            self.assertNotIn("\n", error["message"])
        for body, words in ((complete("x", prompt=[[99999]]), "ids below"), (complete("x", prompt=[]), "prompt"),
                            (complete("x", n=20, prompt=["a", "b"]), "32"), (complete("x", prompt={"a": 1}), "prompt"),
                            (complete("x", grammar='root ::= "a"' + "*" * 50000), "deep within")):
            self.assertIn(words, self.server.post(COMPLETE, body, want=400)["error"]["message"])
        self.assertIn("demo", self.server.post(CHAT, {**chat("x"), "model": "gpt-9"}, want=404)["error"]["message"])
        self.server.post("/v1/nothing", {}, want=404)
        self.assertEqual(self.server.request("GET", CHAT)[0], 405)
        self.assertEqual(self.server.request("DELETE", "/v1/models")[0], 405)

    def test_http_that_is_none(self):
        for data, want in ((b"hello\r\n\r\n", b"400"), (b"GET / HTTP/9.9\r\n\r\n", b"400"),
                           (b"GET / HTTP/1.1\r\nX: " + b"y" * 40000 + b"\r\n\r\n", b"431"),
                           (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n", b"413"),
                           (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n20000\r\n" +
                            b"x" * 0x20000, b"413"),
                           (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
                           (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\nGET /health HTTP/1.1\r\n\r\n", b"400")):
            self.check_refused(data, want)
        status, _, _ = self.server.request("POST", COMPLETE, b"{" + b" " * 70000 + b"}")
        self.assertEqual(status, 413)

    def check_refused(self, data, want=b"400"):
        connection = self.server.raw()
        try:
            connection.sendall(data)
        except OSError:
            pass
        self.assertTrue(read_all(connection).startswith(b"HTTP/1.1 " + want), data[:120])

    def test_what_two_servers_could_read_differently(self):
        """Requests that one in front of this one may end elsewhere: RFC 9112, sections 2.2, 5 to 7."""
        head, body = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\n", b'{"content":"hi"}'
        length, chunked = b"Content-Length: 16\r\n", b"Transfer-Encoding: chunked\r\n"
        for fields in (length + b"Content-Length: 3\r\n", b"Content-Length: +16\r\n", b"Content-Length: 0x10\r\n", b"Content-Length:\r\n",
                       b"Content-Length : 16\r\n", length + b"X: a\rb\r\n", length + b"X: a\0b\r\n", length + b": a\r\n"):
            self.check_refused(head + fields + b"\r\n" + body)
        self.check_refused((head + length + b"\r\n").replace(b"\r\n", b"\n") + body)
        pieces = b"10\r\n" + body + b"\r\n0\r\n\r\n"
        for fields in (chunked + length, chunked * 2, b"Transfer-Encoding: chunked, chunked\r\n", b"Transfer-Encoding: \x0bchunked\r\n",
                       chunked + b"Transfer-Encoding: identity\r\n"):
            self.check_refused(head + fields + b"\r\n" + pieces)
        for size in (b"0x10", b"-1", b"fffffffffffffffff"):
            self.check_refused(head + chunked + b"\r\n" + size + pieces[2:])
        self.check_refused(head + chunked + b"\r\n10;a=" + b"x" * 1000000 + pieces[2:], b"431")
        self.check_refused(head + chunked + b"\r\n" + pieces[:-2] + b"A: b\r\n" * 100000 + b"\r\n", b"431")

    def test_keeps_connections_and_waits_for_100(self):
        body = complete("play jazz", temperature=0)
        expected = self.server.post(COMPLETE, body)["choices"][0]["text"]
        connection = self.server.raw(http_bytes(COMPLETE, body) * 3 + http_bytes(COMPLETE, body, "Connection: close\r\n"))
        answers = read_all(connection)
        self.assertEqual(answers.count(b"HTTP/1.1 200"), 4)
        self.assertEqual(answers.count(json.dumps(expected)[1:-1].encode()), 4)
        data = http_bytes(COMPLETE, body, "Expect: 100-continue\r\nConnection: close\r\n")
        at = data.index(b"\r\n\r\n") + 4
        connection = self.server.raw(data[:at])
        self.assertTrue(connection.recv(100).startswith(b"HTTP/1.1 100"))
        connection.sendall(data[at:])
        self.assertIn(b"HTTP/1.1 200", read_all(connection))
        old = http_bytes(COMPLETE, {**body, "stream": True}).replace(b"HTTP/1.1", b"HTTP/1.0")
        answer = read_all(self.server.raw(old))
        self.assertNotIn(b"chunked", answer)
        self.assertTrue(answer.endswith(b"data: [DONE]\n\n"))

    def test_other_sites_pages_are_refused(self):
        for header, value in (("Origin", "https://evil.example"), ("Host", "evil.example")):
            self.assertEqual(self.server.request("POST", CHAT, chat("x"), {header: value})[0], 403)
        own = {"Origin": f"http://127.0.0.1:{self.server.port}", "Host": f"127.0.0.1:{self.server.port}"}
        self.assertEqual(self.server.request("POST", CHAT, chat("x"), own)[0], 200)
        for host in ("LOCALHOST", "localhost."):
            self.assertEqual(self.server.request("GET", "/health", None, {"Host": f"{host}:{self.server.port}"})[0], 200)

    def test_the_page(self):
        page = self.server.get("/").decode()
        self.assertIn("text/html", self.server.headers["Content-Type"])
        self.assertRegex(self.server.headers["Content-Security-Policy"], r"^default-src 'none'; script-src 'self'; ")
        self.assertNotIn("unsafe", self.server.headers["Content-Security-Policy"])
        self.assertNotRegex(page, r"(src|href)=\"(?!data:|page/)")  # nothing comes from elsewhere
        loaded = re.findall(r"(?:src|href)=\"(page/[^\"]+)", page)
        for name in loaded:  # and what modules import
            script = self.server.get("/" + name).decode()
            loaded += {f"page/{other}" for other in re.findall(r"from \"\./([^\"]+)\"", script)} - set(loaded)
            self.assertRegex(self.server.headers["Content-Type"], r"^text/(css|javascript); charset=utf-8$")
        self.assertEqual(len(loaded), 8)
        for name in ("", "page", "other.js", "../"):
            self.assertEqual(self.server.request("GET", "/page/" + name)[0], 404)
        self.assertEqual(self.server.request("HEAD", "/")[2], b"")


class Limits(unittest.TestCase):
    def test_a_full_queue(self):
        with Server(FOVEA, "--context", "256", "--sequences", "1", "--queue", "2") as server:
            body = complete("sing", temperature=50.0, max_tokens=200)
            refused, requests = [], 8
            while not refused and requests < 500:  # as many as no machine answers while they come
                requests *= 2
                bodies = [{**body, "seed": i} for i in range(requests)]
                answers = at_once([lambda body=body: server.request("POST", COMPLETE, body) for body in bodies])
                refused = [answer for answer in answers if answer[0] != 200]
            self.assertGreater(len(refused), 0)
            for status, headers, answer in refused:
                self.assertEqual(status, 429)
                self.assertGreaterEqual(int(headers["Retry-After"]), 1)
                self.assertEqual(json.loads(answer)["error"]["type"], "rate_limit_error")

    def test_keys_and_origins(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as keys:
            keys.write("  third \r\n \r\n")  # as some editors leave it
            keys.flush()
            with Server(FOVEA, "--context", "256", "--api-key", "first", "--api-key", "second", "--api-key-file",
                        keys.name, "--cors", "https://a.example") as server:
                for key, want in (("first", 200), ("second", 200), ("third", 200), ("fourth", 401), ("", 401)):
                    headers = {"Authorization": "Bearer " + key, "Origin": "https://a.example"}
                    status, headers, _ = server.request("POST", CHAT, chat("x"), headers)
                    self.assertEqual(status, want)
                    self.assertEqual(headers["Access-Control-Allow-Origin"], "https://a.example")
                server.get("/health")
                server.get("/v1/models", want=401)
                status, headers, _ = server.request("OPTIONS", CHAT, None, {"Origin": "https://a.example"})
                self.assertEqual((status, "POST" in headers["Access-Control-Allow-Methods"]), (204, True))
                self.assertEqual(server.request("OPTIONS", CHAT, None, {"Origin": "https://b.example"})[0], 403)

    def test_who_may_not_ask_takes_no_room_for_bodies(self):
        with Server(FOVEA, "--context", "256", "--api-key", "first") as server:
            head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            strangers = [server.raw(head) for _ in range(80)]  # each would take 1 MB of 64
            for connection in strangers:
                self.assertIn(b" 401 ", connection.recv(200))
            headers = {"Authorization": "Bearer first"}
            self.assertEqual(server.request("POST", CHAT, chat("play jazz"), headers)[0], 200)
            for connection in strangers:
                connection.close()

    def test_more_connections_than_there_may_be(self):
        with Server(FOVEA, "--context", "256", "--connections", "8") as server:
            idle = [server.raw() for _ in range(40)]
            started = time.monotonic()
            self.assertEqual(server.post(CHAT, chat("play jazz"))["object"], "chat.completion")
            self.assertLess(time.monotonic() - started, 5)
            for connection in idle:
                connection.close()

    def test_headers_that_come_by_drops_end(self):
        with Server(FOVEA, "--context", "256", "--connections", "4") as server:
            drops = [server.raw(b"POST /v1/completions HTTP/1.1\r\n") for _ in range(4)]
            started = time.monotonic()
            while drops and time.monotonic() - started < 25:  # a byte a second keeps no connection
                time.sleep(1)
                drops = [connection for connection in drops if self.sends(connection)]
            self.assertEqual(drops, [])
            server.post(CHAT, chat("play jazz"))

    def test_bytes_that_come_by_drops_after_a_refusal_end(self):
        with Server(FOVEA, "--context", "256", "--connections", "4") as server:
            drops = [server.raw(b"GARBAGE\r\n\r\n") for _ in range(4)]
            started = time.monotonic()
            while drops and time.monotonic() - started < 25:
                time.sleep(0.5)
                drops = [connection for connection in drops if self.sends(connection)]
            self.assertEqual(drops, [])
            server.post(CHAT, chat("play jazz"))

    @staticmethod
    def sends(connection):
        try:
            connection.sendall(b"X")
            return True
        except OSError:
            return False

    def test_a_deadline(self):
        with Server(FOVEA, "--context", "256", "--sequences", "1", "--time", "1", "--threads", "1", "--queue",
                    "2000") as server:
            statuses, requests = set(), 50
            while 504 not in statuses and requests < 2000:  # as many as keep any machine busy for over a second
                requests *= 2
                bodies = [complete("sing", temperature=50.0, max_tokens=240, seed=i) for i in range(requests)]
                answers = at_once([lambda body=body: server.request("POST", COMPLETE, body) for body in bodies])
                statuses = {status for status, _, _ in answers}
                self.assertLessEqual(statuses, {200, 504})
            self.assertIn(504, statuses)
            self.assertTrue(wait_until(lambda: server.metric("sequences_running") == 0))

    def test_a_signal_drains(self):
        with Server(FOVEA, "--context", "256") as server:
            body = complete("sing", temperature=50.0, max_tokens=240, seed=4)
            whole = server.post(COMPLETE, body)["choices"][0]["text"]
            stream = server.stream(COMPLETE, body)
            pieces = [next(stream)["choices"][0]["text"]]
            server.process.send_signal(signal.SIGTERM)
            pieces += [event["choices"][0]["text"] for event in stream]
            self.assertEqual("".join(pieces), whole)
            self.assertEqual(server.process.wait(20), 0)
            with self.assertRaises(OSError):
                server.raw()

    def test_what_is_not_done_when_time_is_up_is_told_so(self):
        with Server(FOVEA, "--context", "256", "--sequences", "1", "--threads", "1", "--queue", "2000", "--drain", "0") as server:
            body = complete("sing", temperature=50.0, max_tokens=240, n=32)
            stream = server.stream(COMPLETE, body)
            next(stream)
            waiting = [server.raw(http_bytes(COMPLETE, body)) for _ in range(20)]
            self.assertTrue(wait_until(lambda: server.metric("requests_waiting") >= 19))
            server.process.send_signal(signal.SIGTERM)
            answers = [read_all(connection) for connection in waiting]
            for answer in answers:
                self.assertRegex(answer, rb"\AHTTP/1.1 (200 |503 [^\x00]*it is stopping)")
            self.assertGreater(sum(answer.startswith(b"HTTP/1.1 503 ") for answer in answers), 10)
            events = list(stream)
            ended = [event for event in events if "error" in event or event["choices"][0].get("finish_reason")]
            self.assertTrue("error" in events[-1] or len(ended) == 32)
            self.assertEqual(server.process.wait(20), 0)

    def test_it_refuses_to_start_in_one_line(self):
        for arguments, status, words in ((["--port", "70000"], 2, "--port"), (["nothere.fovea"], 1, "no such file"),
                                         (["--host", "nowhere"], 2, "--host"), (["--context", "100000"], 1, "--context"),
                                         (["demo=", "demo="], 2, "different names"), (["--api-key", ""], 2, "--api-key"),
                                         (["--sequences", "0"], 2, "--sequences")):
            ran = subprocess.run([FOVEA, "serve", *arguments], capture_output=True, text=True, timeout=30)
            self.assertEqual((ran.returncode, ran.stdout), (status, ""), arguments)
            self.assertRegex(ran.stderr, r"\Afovea: [^\n]*" + re.escape(words) + r"[^\n]*\n\Z")
        with Server(FOVEA) as server:
            ran = subprocess.run([FOVEA, "serve", "--port", str(server.port)], capture_output=True, text=True, timeout=30)
            self.assertEqual(ran.returncode, 1)
            self.assertIn("address already in use", ran.stderr)
