"""What one client sends to hold the server, and what others get meanwhile; run by server_test.py."""
import json
import threading
import time
import unittest

from cases import CHAT, COMPLETE, FOVEA, KEEPS_FREED_MEMORY, WithServer, complete
from client import Server, chat, http_bytes, read_all, wait_until
from hostile import LEFT_EARLY, LONG, MANY_NAMES, PROMISE, SIBLINGS, UNREAD, from_address, heavy_schema, in_form
from under_attack import peak

SHORT = complete("play jazz", temperature=0, max_tokens=4)
GREEDY = {**LONG, "n": 16, "max_tokens": 100}
OTHER = "127.0.0.2"  # another client's address


def ask(server, body, address="127.0.0.1", path=COMPLETE):
    """Status, seconds and text of a request from an address."""
    begun = time.monotonic()
    answer = read_all(from_address(address, server, http_bytes(path, body, "Connection: close\r\n")))
    head, _, rest = answer.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    return status, time.monotonic() - begun, json.loads(rest)["choices"][0]["text"] if status == 200 else rest.decode()


def read_status(connection):
    connection.settimeout(300)
    return int(connection.recv(20).split()[1])


class Bodies(WithServer):
    def test_a_body_is_read_in_time_that_grows_with_its_bytes(self):
        """Each object was looked for among its siblings: a minute of everybody's time for 1 MB. attack_figures.py judges closer."""
        for body in (SIBLINGS, MANY_NAMES):
            begun = self.server.cpu_seconds()
            self.server.request("POST", CHAT, body)
            self.assertLess(self.server.cpu_seconds() - begun, 5)  # 0.04 s, under sanitizers 1.2

    def test_bodies_that_never_come_take_no_room(self):
        held = [self.server.raw(PROMISE) for _ in range(200)]
        self.assertEqual(ask(self.server, SHORT)[0], 200)
        self.assertLess(self.server.metric("body_bytes"), 1 << 20)
        for connection in held:
            connection.close()

    def test_an_address_has_half_the_room_at_most(self):
        held = [from_address(OTHER, self.server, PROMISE) for _ in range(40)]
        for connection in held:
            try:
                connection.sendall(b" " * 999999)
            except OSError:
                pass  # refused
        self.assertTrue(wait_until(lambda: self.server.metric("body_bytes") > 30 << 20))
        self.assertLessEqual(self.server.metric("body_bytes"), 32 << 20)
        self.assertEqual(ask(self.server, complete("x" * 200000))[0], 400)  # read in full: too many tokens
        for connection in held:
            connection.close()
        self.assertTrue(wait_until(lambda: self.server.metric("body_bytes") < 1 << 20))

    def test_long_bodies_of_one_address_wait_for_one_another(self):
        """Others' requests are read meanwhile: those of 64 KB by turns, short ones beside them."""
        data = http_bytes(CHAT, SIBLINGS, "Connection: close\r\n")
        held = [from_address(OTHER, self.server, data) for _ in range(24)]
        begun = time.monotonic()
        self.assertEqual(ask(self.server, complete("x" * 64000))[0], 400)
        self.assertEqual(ask(self.server, SHORT)[0], 200)
        took = time.monotonic() - begun
        for connection in held:
            self.assertIn(b" 400 ", read_all(connection)[:20])
        self.assertLess(took, (time.monotonic() - begun) / 2)

    def test_whole_answers_that_nobody_reads(self):
        """300 of 400 KB: those that wait take 64 MB at most, and the oldest of the address that has most go."""
        body = http_bytes("/detokenize", {"model": "demo", "tokens": [300] * 65536})
        held = [from_address(OTHER, self.server, body, receive_buffer=4096) for _ in range(300)]
        whole = read_all(from_address("127.0.0.3", self.server, body.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)))
        self.assertGreater(len(whole), 300000)
        self.assertTrue(wait_until(lambda: self.server.metric("connections") < 200))
        self.assertEqual(ask(self.server, SHORT)[0], 200)
        for connection in held:
            connection.close()

    def test_probabilities_of_prompts_that_nobody_reads(self):
        body = {"model": "demo", "prompt": ["sing " * 40] * 32, "max_tokens": 1, "logprobs": 20, "echo": True, "stream": True}
        before = self.server.rss()
        held = [from_address(OTHER, self.server, http_bytes(COMPLETE, body), receive_buffer=4096) for _ in range(8)]
        self.assertTrue(wait_until(lambda: self.server.metric("sequences_running") > 0))
        for _ in range(4):
            self.assertEqual(ask(self.server, SHORT)[0], 200)
        if not KEEPS_FREED_MEMORY:
            self.assertLess(self.server.rss() - before, 24 << 20)
        for connection in held:
            connection.close()

    def test_a_client_that_has_sent_more_and_left_is_seen(self):
        before = self.server.metric("cancelled_total")
        for _ in range(4):
            connection = self.server.raw(LEFT_EARLY)
            self.assertTrue(wait_until(lambda: self.server.metric("sequences_running") > 0))
            connection.close()
        self.assertTrue(wait_until(lambda: self.server.metric("cancelled_total") > before, seconds=5))
        self.assertTrue(wait_until(lambda: self.server.metric("sequences_running") == 0, seconds=5))


class Places(unittest.TestCase):
    def test_who_asks_for_much_lets_others_go_on(self):
        """Two places, thirty-two long answers of one address: another's short one takes a place at once, and no text changes."""
        with Server(FOVEA, "--context", "256", "--sequences", "2") as server:
            alone = ask(server, SHORT)[2]
            lone = ask(server, {**LONG, "n": 4, "seed": 7})[2]
            greedy = threading.Thread(target=ask, args=(server, {**LONG, "n": 32}))
            begun = time.monotonic()
            greedy.start()
            self.assertTrue(wait_until(lambda: server.metric("sequences_running") >= 2))
            times = []
            for _ in range(3):
                status, seconds, text = ask(server, SHORT, OTHER)
                self.assertEqual((status, text), (200, alone))
                times.append(seconds)
            self.assertTrue(greedy.is_alive(), "the greedy client's answers were too short to show anything")
            self.assertEqual(ask(server, {**LONG, "n": 4, "seed": 7}, OTHER)[2], lone)
            greedy.join()
            self.assertLess(max(times), (time.monotonic() - begun) / 4)
            self.assertGreater(server.metric("pauses_total"), 0)

    def test_eight_greedy_clients_and_a_newcomer(self):
        """More answers than there are places, and more tokens than pages: a newcomer has both, and no text changes."""
        with Server(FOVEA, "--context", "256") as server:
            alone = ask(server, SHORT)[2]
            lone = [ask(server, {**LONG, "n": 4, "seed": seed})[2] for seed in range(2)]
            answers = []
            greedy = [threading.Thread(target=lambda i=i: answers.append(ask(server, {**GREEDY, "seed": i}, f"127.0.0.{2 + i}")))
                      for i in range(8)]
            begun = time.monotonic()
            for thread in greedy:
                thread.start()
            self.assertTrue(wait_until(lambda: server.metric("requests_waiting") >= 6))
            times = []
            for i in range(10):
                status, seconds, text = ask(server, SHORT, f"127.0.1.{i}")
                self.assertEqual((status, text), (200, alone))
                times.append(seconds)
            self.assertTrue(greedy[0].is_alive(), "the greedy clients' answers were too short to show anything")
            for thread in greedy:
                thread.join()
            self.assertEqual([answer[0] for answer in answers], [200] * 8)
            self.assertEqual([ask(server, {**LONG, "n": 4, "seed": seed})[2] for seed in range(2)], lone)
            self.assertLess(max(times), (time.monotonic() - begun) / 8)
            self.assertGreater(server.metric("rests_total"), 0)

    def test_users_of_one_place_go_on_by_turns(self):
        with Server(FOVEA, "--context", "256", "--sequences", "1") as server:
            texts = {}

            def answer(address, seed):
                texts[address] = ask(server, {**LONG, "max_tokens": 90, "seed": seed}, address)[2]

            threads = [threading.Thread(target=answer, args=(f"127.0.0.{i}", i)) for i in range(2, 6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for i in range(2, 6):
                self.assertEqual(texts[f"127.0.0.{i}"], ask(server, {**LONG, "max_tokens": 90, "seed": i})[2])

    def test_a_full_queue_has_room_for_another_client(self):
        with Server(FOVEA, "--context", "256", "--sequences", "1", "--queue", "8") as server:
            held = [server.raw(http_bytes(COMPLETE, {**LONG, "n": 16, "seed": i})) for i in range(12)]
            self.assertTrue(wait_until(lambda: server.metric("requests_waiting") >= 8))
            self.assertEqual(ask(server, SHORT, OTHER)[0], 200)
            statuses = [read_status(connection) for connection in held]
            self.assertEqual(set(statuses), {200, 429})  # those that were given up among them

    def test_streams_that_nobody_reads(self):
        """Their bytes wait in bounded buffers, and their texts for others."""
        with Server(FOVEA, "--context", "256", "--sequences", "2") as server:
            held = [from_address(OTHER, server, http_bytes(CHAT, UNREAD), receive_buffer=4096) for _ in range(2)]
            self.assertTrue(wait_until(lambda: server.metric("sequences_running") >= 2))
            time.sleep(1)
            for _ in range(4):
                status, seconds, _ = ask(server, SHORT)
                self.assertEqual(status, 200)
                self.assertLess(seconds, 10)
            for connection in held:
                connection.close()

    @unittest.skipIf(KEEPS_FREED_MEMORY, "what is resident says nothing of the server")
    def test_what_answers_keep_of_their_requests(self):
        """Settings that a response repeats, and tools by which each of 32 choices is read: 0.8 MB, which are 13 MB as values."""
        values = [{}] * 200000
        tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"enum": values}}}}}
        response = {"model": "demo", "input": "sing", "metadata": {"a": values}, "stream": True, "temperature": 50.0}
        with Server(FOVEA, "--context", "256", "--sequences", "1") as server:
            before = server.rss()
            asked = [http_bytes("/v1/responses", response)] * 6 + [http_bytes(CHAT, {**chat("sing", temperature=50.0, n=32), "tools": [tool]})] * 2
            held = [from_address(OTHER, server, data, receive_buffer=4096) for data in asked]
            self.assertTrue(wait_until(lambda: server.metric("requests_waiting") >= 7))
            self.assertLess(peak(server) - before, 150 << 20)
            self.assertGreater(server.metric("body_bytes"), 6 * 3 * 600000)
            for connection in held:
                connection.close()
            self.assertTrue(wait_until(lambda: server.metric("body_bytes") == 0))

    def test_attention_waits_for_its_pages(self):
        with Server(FOVEA, "--context", "256", "--sequences", "8", "--positions", "512") as server:
            held = [server.raw(http_bytes(COMPLETE, {**LONG, "n": 16, "seed": i})) for i in range(4)]
            self.assertTrue(wait_until(lambda: server.metric("sequences_running") >= 2))
            view = {"model": "demo", "prompt": "turn on the light in the kitchen " * 12, "layer": 0, "head": 0}
            for _ in range(10):
                answer = read_all(from_address(OTHER, server, http_bytes("/v1/attention", view, "Connection: close\r\n")))
                self.assertIn(b" 200 ", answer[:20], answer[-300:])
            for connection in held:
                connection.close()


class Http(WithServer):
    def test_what_rfc_9112_refuses(self):
        body = http_bytes(COMPLETE, SHORT, "Connection: close\r\n")
        for data, want in ((b"\r\n\r\n" + body, b"200"),
                           (body.replace(b"Host: localhost", b"Host: localhost\r\nHost: localhost"), b"400"),
                           (body.replace(b"Host: localhost\r\n", b""), b"400"),
                           (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", b"501")):
            self.assertTrue(read_all(self.server.raw(data)).startswith(b"HTTP/1.1 " + want), data[:80])

    def test_whose_names_and_keys(self):
        self.assertNotIn("warning", self.server.errors())
        with Server(FOVEA, "--context", "64", "--host", "0.0.0.0", "--allow-host", "fovea.example") as server:
            self.assertTrue(wait_until(lambda: "--api-key" in server.errors()))
            for host, want in (("fovea.example", 200), ("fovea.example:80", 200), ("localhost", 200), ("10.0.0.1", 200),
                               ("evil.example", 403)):
                self.assertEqual(server.request("GET", "/v1/models", None, {"Host": host})[0], want, host)
        with Server(FOVEA, "--context", "64", "--host", "0.0.0.0", "--api-key", "k") as server:
            self.assertNotIn("warning", server.errors())
            late = (f"POST {COMPLETE} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "2\r\n{}\r\n0\r\nAuthorization: Bearer k\r\n\r\n")  # a trailer's key is none
            self.assertTrue(read_all(server.raw(late.encode())).startswith(b"HTTP/1.1 401"))


    def test_what_a_trailer_says_is_none_of_the_request(self):
        head = f"POST {COMPLETE} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        data = json.dumps(SHORT)
        for trailer in ("Content-Encoding: gzip", "Host: evil.example", "Origin: https://evil.example", "X-Fovea-Logits-Hash: 1"):
            answer = read_all(self.server.raw(f"{head}{len(data):x}\r\n{data}\r\n0\r\n{trailer}\r\n\r\n".encode()))
            self.assertTrue(answer.startswith(b"HTTP/1.1 200"), (trailer, answer[:300]))
            self.assertNotIn(b"X-Fovea-Logits-Hash", answer)

    def test_a_whole_address_names_the_host(self):
        for host, want in (("localhost", b"200"), ("127.0.0.1:80", b"200"), ("evil.example", b"403")):
            data = f"GET http://{host}/v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            self.assertTrue(read_all(self.server.raw(data.encode())).startswith(b"HTTP/1.1 " + want), host)


class FormsOfMany(WithServer):
    def test_forms_are_compiled_beside_what_others_wait_for(self):
        """Twelve that take half a second each: health is told meanwhile, and another client's form is next."""
        done = []
        threads = [threading.Thread(target=lambda i=i: done.append(read_status(self.server.raw(http_bytes(CHAT, in_form(
            heavy_schema(i))))))) for i in range(12)]
        for thread in threads:
            thread.start()
        slowest = 0
        for _ in range(20):
            begun = time.monotonic()
            self.server.get("/health")
            slowest = max(slowest, time.monotonic() - begun)
            time.sleep(0.02)
        small = http_bytes(CHAT, in_form({"enum": ["a"]}), "Connection: close\r\n")
        self.assertIn(b" 200 ", read_all(from_address(OTHER, self.server, small))[:20])
        n_done = len(done)
        for thread in threads:
            thread.join()
        self.assertLess(n_done, 12, "the greedy client's forms were too quick to show anything")
        self.assertEqual(set(done), {200})
        self.assertLess(slowest, 2)  # one after the other they take many seconds, which HTTP waited for

    def test_refusals_are_remembered(self):
        wrong = {**heavy_schema(1), "properties": {f"p{i}": {"type": "integer"} for i in range(6)} | {"q": {"pattern": "(?=a)"}}}
        wrong["allOf"] = wrong["allOf"] + [{"anyOf": [{"properties": {"p0": {"minimum": k}}} for k in range(9)]}] * 3
        errors = [self.server.post(CHAT, in_form(wrong), want=400)["error"] for _ in range(3)]
        self.assertEqual(errors[1:], errors[:1] * 2)
        self.assertEqual(errors[0]["param"], "response_format")

    def test_a_client_that_left_before_its_form_was_ready(self):
        before = self.server.metric("generated_tokens_total")
        for i in range(4):
            self.server.raw(http_bytes(CHAT, {**in_form(heavy_schema(100 + i)), "max_tokens": 50})).close()
        self.server.post(CHAT, in_form({"enum": ["b"]}))
        self.assertTrue(wait_until(lambda: self.server.metric("sequences_running", "requests_waiting") == 0))
        self.assertLess(self.server.metric("generated_tokens_total") - before, 50)
