"""What clients send that would hold a server: inputs of the tests of attacks, each alone, and of the soak, all at once."""
import random
import socket

from client import CHAT, COMPLETE, chat, complete, http_bytes

LONG = complete("sing", temperature=50.0, max_tokens=200)  # noise, which ends late
SIBLINGS = b'{"a":[' + b"{}," * 349000 + b"1]}"
MANY_NAMES = b'{"a":[' + b",".join(b"{" + b",".join(b'"%d":1' % i for i in range(4000)) + b"}" for _ in range(20)) + b"]}"
PROMISE = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n".encode()  # of a body
UNREAD = {**chat("sing", temperature=50.0, max_tokens=200, n=2), "stream": True, "logprobs": True, "top_logprobs": 20}
READ_NEVER = [("/detokenize", {"model": "demo", "tokens": [300] * 65536}),
              (COMPLETE, {**complete("sing " * 40, max_tokens=1, logprobs=20), "prompt": ["sing " * 40] * 32, "echo": True,
                          "stream": True})]  # whole, and in pieces
LEFT_EARLY = http_bytes(COMPLETE, {**LONG, "n": 32}) + b"G"


def from_address(address, server, data=b"", receive_buffer=0, timeout=300):
    """A connection of another client on which these bytes were sent."""
    connection = socket.socket()
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.bind((address, 0))
    connection.settimeout(timeout)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(data)
    return connection


def heavy_schema(seed):
    """A schema of few bytes that takes a compiler long: each of its parts has three ways, which go with those of all others."""
    names = [f"p{i}" for i in range(6)]
    return {"type": "object", "properties": {name: {"type": "integer"} for name in names},
            "allOf": [{"anyOf": [{"properties": {name: {"minimum": 10 * way + seed}}, "required": [name]} for way in range(3)]}
                      for name in names]}


def long_schema(seed):
    """Words of nearly 64 KB."""
    draw = random.Random(seed)
    return {"enum": ["".join(draw.choices("abcdefghijklmnop", k=16)) for _ in range(3200)]}


def in_form(schema, text="play jazz"):
    return chat(text, max_tokens=2, response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": schema}})


def counted_regex(seed):
    """Forms whose places differ by counters alone."""
    n = 10 + seed % 40
    return {**LONG, "regex": rf"([a-z]{{1,{n}}}[a-z ]{{1,30}}){{1,50}}" if seed % 2 else rf"(\w{{1,{n}}}\s?){{1,10}}"}
