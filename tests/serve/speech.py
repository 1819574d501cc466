"""Recordings: what `fovea transcribe` writes of them comes over HTTP, in every form; and uploads that are none."""
import json
import os
import re
import struct
import tempfile
import unittest

from cases import CHAT, FOVEA, GOLDEN, chat, run_fovea
from client import Server, at_once, http_bytes, read_all, wait_until

TRANSCRIBE, TRANSLATE = "/v1/audio/transcriptions", "/v1/audio/translations"
BOUNDARY = "a-boundary-7"
FORM_TYPE = {"Content-Type": "multipart/form-data; boundary=" + BOUNDARY}


def recording(name):
    return os.path.join(GOLDEN, "recordings", name + ".wav")


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def form(sound, fields=(), file_name="talk.wav"):
    """A form's bytes; `fields` are pairs, or a dictionary. A list is several fields of one name."""
    parts = []
    for name, values in dict(fields).items() if isinstance(fields, dict) else fields:
        for value in values if isinstance(values, list) else [values]:
            parts.append(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode())
    if sound is not None:
        parts.append(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{file_name}"\r\n'
                     f'Content-Type: audio/wav\r\n\r\n'.encode() + sound + b"\r\n")
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def upload(sound, **fields):
    """A request with a form as it goes over the wire."""
    return http_bytes(TRANSCRIBE, form(sound, fields), f"Content-Type: {FORM_TYPE['Content-Type']}\r\n")


def wav(n_samples, rate=16000, value=0):
    data = struct.pack("<h", value) * n_samples
    head = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16)
    chunks = b"WAVE" + head + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks


def milliseconds(time):
    hours, minutes, seconds = re.split("[:]", time.replace(",", "."))
    return round((int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1000)


class WithSpeech(unittest.TestCase):
    arguments = []

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.model = os.path.join(cls.scratch.name, "talking.fovea")
        run_fovea("convert", os.path.join(GOLDEN, "speech/whisper_talking"), "-o", cls.model)
        cls.server = Server(FOVEA, "demo=", cls.model, "--context", "256", *cls.arguments)

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        cls.scratch.cleanup()
        assert status == 0, f"exit status: expected 0, got {status}: {cls.server.errors()}"

    def ask(self, sound, want=200, path=TRANSCRIBE, **fields):
        status, self.headers, answer = self.server.request("POST", path, form(sound, fields), FORM_TYPE)
        self.assertEqual(status, want, answer[:300])
        return answer

    def transcribed(self, name, *options):
        """What the command line says of a recording."""
        return run_fovea("transcribe", self.model, recording(name), *options)


class Speech(WithSpeech):
    def test_all_forms_are_the_command_lines(self):
        for name in ("one", "two", "three"):
            sound = read_bytes(recording(name))
            for options, fields in (([], {}), (["--language", "de"], {"language": "de"}),
                                    (["--temp", "0.7", "--seed", "5"], {"temperature": 0.7, "seed": 5}),
                                    (["--vad", "energy"], {"chunking_strategy": "auto"}),
                                    (["--prompt", "Fovea, a name."], {"prompt": "Fovea, a name."})):
                known = json.loads(self.transcribed(name, "--json", *options))
                whole = json.loads(self.ask(sound, response_format="verbose_json", **fields))
                self.assertEqual((whole["task"], whole["text"], whole["language"], whole["duration"]),
                                 ("transcribe", known["text"], known["language"], known["seconds"]))
                self.assertEqual(whole["usage"], {"type": "duration", "seconds": known["seconds"]})
                for i, (got, want) in enumerate(zip(whole["segments"], known["segments"], strict=True)):
                    self.assertEqual({key: got[key] for key in want}, want)
                    self.assertEqual(got["id"], i)
                    self.assertEqual(0 <= got["seek"] * 0.01 <= got["start"] + 1e-9, True, got)
                self.assertEqual(json.loads(self.ask(sound, **fields)),
                                 {"text": known["text"], "usage": {"type": "duration", "seconds": known["seconds"]}})
                self.assertEqual(self.ask(sound, response_format="text", **fields).decode(), known["text"] + "\n")
                self.assertIn("text/plain", self.headers["Content-Type"])
                for kind in ("srt", "vtt"):
                    self.assertEqual(self.ask(sound, response_format=kind, **fields).decode(),
                                     self.transcribed(name, "--" + kind, *options))
                times = re.findall(r"(\S+) --> (\S+)", self.ask(sound, response_format="srt", **fields).decode())
                self.assertEqual([[milliseconds(t) for t in pair] for pair in times],
                                 [[round(1000 * s["start"]), round(1000 * s["end"])] for s in known["segments"]])

    def test_translations(self):
        sound = read_bytes(recording("two"))
        known = json.loads(self.transcribed("two", "--json", "--task", "translate"))
        whole = json.loads(self.ask(sound, path=TRANSLATE, response_format="verbose_json"))
        self.assertEqual((whole["task"], whole["text"]), ("translate", known["text"]))

    def test_a_stream_has_each_segment_as_it_comes(self):
        known = json.loads(self.transcribed("three", "--json"))
        answer = self.ask(read_bytes(recording("three")), stream="true").decode()
        self.assertIn("text/event-stream", self.headers["Content-Type"])
        events = [json.loads(line[6:]) for line in answer.splitlines() if line]
        self.assertEqual([event["type"] for event in events],
                         ["transcript.text.delta"] * len(known["segments"]) + ["transcript.text.done"])
        self.assertEqual("".join(event["delta"] for event in events[:-1]), known["text"])
        self.assertEqual(events[-1]["text"], known["text"])
        self.assertEqual(events[-1]["usage"]["seconds"], known["seconds"])
        broken = self.ask(b"no sound at all", stream="true").decode()
        self.assertIn('"error":{"message":"file: expected a ', broken)

    def test_recordings_together_are_those_alone_beside_texts(self):
        names = ["one", "two", "three"] * 5
        fields = [{"temperature": 0.1 * (i % 4), "seed": i, "language": ["en", "de", "haw"][i % 3]} for i in range(15)]
        calls = [lambda n=n, f=f: self.ask(read_bytes(recording(n)), response_format="verbose_json", **f)
                 for n, f in zip(names, fields)]
        alone = [call() for call in calls]
        text = self.server.post(CHAT, chat("play jazz", temperature=0))["choices"]
        both = at_once(calls + [lambda: self.server.post(CHAT, chat("play jazz", temperature=0))["choices"]] * 5)
        self.assertEqual(both[:15], alone)
        self.assertEqual(both[15:], [text] * 5)
        self.assertGreater(self.server.metric("passes_total"), 100)
        self.assertTrue(wait_until(lambda: self.server.metric("sequences_running", "upload_bytes") == 0))

    def test_which_models_are_for_which_requests(self):
        error = self.server.post(CHAT, {**chat("x"), "model": "talking"}, want=400)["error"]
        self.assertEqual(error["message"], "model: expected one for text, got talking, which is for speech")
        error = json.loads(self.ask(wav(100), 400, model="demo"))["error"]
        self.assertEqual((error["message"], error["param"]),
                         ("model: expected one for speech, got demo, which is for text", "model"))
        self.ask(wav(100), 404, model="whisper-1")
        self.ask(wav(100), model="talking:latest")
        self.assertEqual(self.server.post("/api/show", {"model": "talking"})["capabilities"], ["transcription"])
        with Server(FOVEA, "--context", "256") as server:
            status, _, answer = server.request("POST", TRANSCRIBE, form(wav(100)), FORM_TYPE)
            self.assertEqual((status, json.loads(answer)["error"]["message"]),
                             (404, "model: expected one for speech, which none of demo is, got none"))

    def test_sounds_that_are_short_or_silent(self):
        self.assertEqual(json.loads(self.ask(wav(0))), {"text": "", "usage": {"type": "duration", "seconds": 0.0}})
        self.assertEqual(self.ask(wav(0), response_format="vtt"), b"WEBVTT\n\n")
        self.assertEqual(json.loads(self.ask(wav(0), response_format="verbose_json"))["language"], "")
        self.assertEqual(json.loads(self.ask(wav(100), response_format="verbose_json", language="German"))["language"], "de")
        for rate in (8000, 44100):
            self.assertAlmostEqual(json.loads(self.ask(wav(rate // 2, rate)))["usage"]["seconds"], 0.5, places=3)


    def test_words_are_the_command_lines(self):
        for name in ("one", "three"):
            sound = read_bytes(recording(name))
            known = json.loads(self.transcribed(name, "--json", "--words", "--language", "de"))
            want = [{"word": w["word"], "start": w["start"], "end": w["end"]} for s in known["segments"] for w in s["words"]]
            self.assertTrue(want)
            for granularity, has_segments in (("word", False), (["word", "segment"], True)):
                whole = json.loads(self.ask(sound, response_format="verbose_json", language="de",
                                            **{"timestamp_granularities[]": granularity}))
                self.assertEqual(whole["text"], known["text"])
                self.assertEqual([(w["start"], w["end"]) for w in whole["words"]], [(w["start"], w["end"]) for w in want])
                self.assertEqual(whole["words"][0]["word"].strip(), whole["words"][0]["word"])
                self.assertEqual("segments" in whole, has_segments)
            plain = json.loads(self.ask(sound, response_format="verbose_json", language="de"))
            self.assertNotIn("words", plain)
            self.assertEqual(plain["segments"][0]["text"], known["segments"][0]["text"])  # later windows begin elsewhere


class Uploads(WithSpeech):
    arguments = ["--upload", "2M", "--body", "64K"]

    def refused(self, body, headers=FORM_TYPE, status=400):
        got, _, answer = self.server.request("POST", TRANSCRIBE, body, headers)
        self.assertEqual(got, status, answer[:300])
        message = json.loads(answer)["error"]["message"]
        self.assertNotIn("\n", message)
        return message

    def test_fields_that_say_the_wrong_thing(self):
        sound = wav(1600)
        for fields, words in (({"response_format": "mp3"},
                               "response_format: expected json, text, srt, verbose_json or vtt, got mp3"),
                              ({"temperature": "hot"}, 'temperature: expected a number, got "hot"'),
                              ({"temperature": 2}, "temperature: expected 0 to 1, got 2"),
                              ({"temperature": "[" * 5000}, "temperature"), ({"seed": "1.5"}, "seed"),
                              ({"stream": "maybe"}, 'stream: expected true or false, got "maybe"'),
                              ({"stream": "true", "response_format": "srt"}, "expected json beside stream"),
                              ({"timestamp_granularities[]": "word"}, "expected response_format verbose_json beside word"),
                              ({"timestamp_granularities[]": "line"}, "timestamp_granularities: expected segment or word"),
                              ({"language": "xx"}, "language: expected one of "),
                              ({"include[]": "logprobs"}, "include: expected none"),
                              ({"chunking_strategy": "server"}, "chunking_strategy: expected auto, got server"),
                              ([("model", "talking")] * 2, "model: expected one, got several")):
            self.assertIn(words, self.refused(form(sound, fields)))
        self.ask(sound, **{"timestamp_granularities[]": "segment"})
        self.assertEqual(self.refused(form(None)), "file: expected a recording, got none")
        self.assertEqual(self.refused(form(b"")), "file: expected a recording, got an empty file")
        twice = form(sound)[:-len(BOUNDARY) - 6] + form(sound)
        self.assertEqual(self.refused(twice), "file: expected one, got several")

    def test_forms_that_are_none(self):
        body = form(wav(100))
        kind = "multipart/form-data"
        for given, words in (("application/json", f"Content-Type: expected {kind}, got application/json"),
                             (kind, "a boundary of 1 to 70 bytes, got 0"), (f"{kind}; boundary=" + "x" * 71, "got 71"),
                             (f"{kind}; boundary=other", "expected a form with its boundary")):
            self.assertIn(words, self.refused(body, {"Content-Type": given}))
        mark = b"--" + BOUNDARY.encode()
        many = b"".join(form(None, {f"f{i}": 1})[:-len(BOUNDARY) - 6] for i in range(99))
        for broken, words in ((b"", "its boundary"), (body[:-20], "at its end"), (mark + b"x" + body, "a line's end behind"),
                              (mark + b"\r\n\r\n\r\nx\r\n" + body, "Content-Disposition"),
                              (mark + b"\r\nX: " + b"y" * 9000 + b"\r\n\r\n" + body, "4096 bytes"),
                              (many + body, "at most 64 fields")):
            self.assertIn(words, self.refused(broken))
        for change in (lambda b: b.replace(b"Content-Disposition", b"content-disposition"),
                       lambda b: b"preamble\r\n" + b + b"epilogue",
                       lambda b: b.replace(b'name="file"', b"name=file"), lambda b: b.replace(b"; ", b" ;")):
            self.assertEqual(self.server.request("POST", TRANSCRIBE, change(body), FORM_TYPE)[0], 200)
        quoted = {"Content-Type": f'multipart/form-data; charset="utf-8;"; boundary="{BOUNDARY}"'}
        self.assertEqual(self.server.request("POST", TRANSCRIBE, form(wav(100), file_name='a\\".wav'), quoted)[0], 200)

    def test_files_that_are_no_sounds(self):
        whole = wav(4000, value=100)
        for sound, words in ((b"x" * 5000, "file: expected a "), (whole[:30], "file: WAV"), (b"fLaC" + b"\0" * 500, "file: "),
                             (b"OggS" + b"\xff" * 500, "file: "), (b"ID3" + b"\0" * 3000, "file: "),
                             (wav(100, rate=5), "file: samples a second: expected "),
                             (b"\0\0\0 ftypM4A " + b"\1" * 500, "got MPEG-4 (m4a, mp4): `ffmpeg -i file -f wav -` makes one"),
                             (b"\x1a\x45\xdf\xa3" + b"\1" * 500, "got Matroska (webm, mkv): `ffmpeg")):
            self.assertIn(words, self.refused(form(sound)))
        for n in range(0, len(whole), 997):  # each is read as far as it goes, or refused
            self.assertIn(self.server.request("POST", TRANSCRIBE, form(whole[:n] or b"R"), FORM_TYPE)[0], (200, 400))

    def test_what_an_upload_may_have(self):
        for n_bytes in (2 << 20, 16 << 20):  # more than a socket holds: who sends all before it reads gets the answer too
            self.assertEqual(self.refused(form(b"x" * n_bytes), status=413),
                             "body: expected at most 2097152 bytes, got more")
        self.assertEqual(self.server.request("POST", CHAT, b"x" * 70000)[0], 413)
        self.assertEqual(self.server.request("POST", TRANSCRIBE, form(wav(500000)), FORM_TYPE)[0], 200)
        chunked = (f"POST {TRANSCRIBE} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {FORM_TYPE['Content-Type']}\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n").encode()
        body = form(wav(100))
        pieces = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:50], body[50:])) + b"0\r\n\r\n"
        self.assertTrue(self.server.raw(chunked + pieces).recv(100).startswith(b"HTTP/1.1 200"))
        connection = self.server.raw(chunked)
        try:
            for _ in range(50):
                connection.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        except OSError:
            pass
        self.assertTrue(read_all(connection).startswith(b"HTTP/1.1 413"))
        seconds = 3601  # at the lowest rate a small file lasts long
        long_one = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 1000, 1000, 1, 8)
        data = b"\x80" * (1000 * seconds)
        body = form(b"RIFF" + b"\xff" * 4 + b"WAVE" + long_one + b"data" + struct.pack("<I", len(data)) + data)
        with Server(FOVEA, self.model, "--upload", "8M") as server:
            status, _, answer = server.request("POST", TRANSCRIBE, body, FORM_TYPE)
            self.assertEqual((status, json.loads(answer)["error"]["message"]),
                             (400, "file: seconds: expected at most 3,600, got more"))
        with Server(FOVEA, "--api-key", "k", self.model) as server:
            self.assertIn(b" 401 ", server.raw(chunked).recv(200))

    def test_uploads_leave_room_for_others_and_their_clients_may_go(self):
        head = f"POST {TRANSCRIBE} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n".encode()
        held = [self.server.raw(head + b"x" * 1900000) for _ in range(27)]  # 50 MB at most of one address
        self.assertTrue(wait_until(lambda: self.server.metric("upload_bytes") >= 27 * 1900000))
        status, headers, answer = self.server.request("POST", TRANSCRIBE, form(wav(900000)), FORM_TYPE)
        self.assertEqual((status, "bodies of other requests" in json.loads(answer)["error"]["message"]), (429, True))
        self.server.post(CHAT, chat("play jazz", max_tokens=2))
        for connection in held:
            connection.close()
        self.assertTrue(wait_until(lambda: self.server.metric("upload_bytes") == 0))
        cancelled = self.server.metric("cancelled_total")
        gone = [self.server.raw(upload(wav(900000), temperature=0.9)) for _ in range(8)]
        self.assertTrue(wait_until(lambda: self.server.metric("sequences_running") > 0))
        for connection in gone:
            connection.close()
        idle = lambda: self.server.metric("sequences_running", "requests_waiting", "upload_bytes") == 0
        self.assertTrue(wait_until(idle))
        self.assertGreater(self.server.metric("cancelled_total"), cancelled)
        self.ask(wav(1000))

    def test_the_end_of_the_server_and_of_the_time(self):
        with Server(FOVEA, self.model, "--time", "1", "--threads", "1", "--sequences", "1") as server:
            bodies = [form(wav(900000), {"temperature": "0.9", "seed": i}) for i in range(12)]
            statuses = {answer[0] for answer in at_once(
                [lambda body=body: server.request("POST", TRANSCRIBE, body, FORM_TYPE) for body in bodies])}
            self.assertLessEqual(statuses, {200, 504})
            self.assertTrue(wait_until(lambda: server.metric("sequences_running") == 0))
        with Server(FOVEA, self.model, "--drain", "0", "--threads", "1") as server:
            waiting = [server.raw(upload(wav(900000))) for _ in range(12)]
            self.assertTrue(wait_until(lambda: server.metric("sequences_running") > 0))
            self.assertEqual(server.stop(seconds=30), 0)
            for connection in waiting:
                self.assertRegex(read_all(connection), rb"\A(HTTP/1.1 (200|503) |\Z)")
