"""Throughput of two builds of the server by pairs: tokens a second of 1 to 64 clients, in turns A B B A.

    throughput.py FOVEA_A FOVEA_B [--seconds S] [--rounds N] [--clients N...]    default: 3 seconds, 5 rounds, 1 4 16 64 clients

Only ratios of runs that follow one another say anything on a busy machine; their median is what counts.
"""
import argparse
import http.client
import json
import statistics
import threading
import time

from client import COMPLETE, Server, complete

COMMANDS = ["turn on the reading lamp", "play jazz in the kitchen", "is the front door locked", "wake me up at 7 am"]


def tokens_per_second(port, n_clients, seconds):
    """Clients that keep their connections, and ask again as soon as they are answered."""
    counts, end = [0] * n_clients, time.monotonic() + seconds

    def client(number):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while time.monotonic() < end:
            body = complete(COMMANDS[number % len(COMMANDS)], temperature=5.0, seed=number, max_tokens=40)
            connection.request("POST", COMPLETE, json.dumps(body))
            counts[number] += json.loads(connection.getresponse().read())["usage"]["completion_tokens"]
        connection.close()

    threads = [threading.Thread(target=client, args=(i,)) for i in range(n_clients)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - begun)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("programs", nargs=2)
    options.add_argument("--seconds", type=float, default=3)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16, 64])
    options = options.parse_args()
    a, b = options.programs
    with Server(a, "--context", "256") as first, Server(b, "--context", "256") as second:
        for server in (first, second):
            tokens_per_second(server.port, 4, 1)  # warm
        print("clients   A tokens/s   B tokens/s   B/A   of each pair")
        for n in options.clients:
            speeds, ratios = {first: [], second: []}, []
            for _ in range(options.rounds):
                for pair in ((first, second), (second, first)):
                    got = {server: tokens_per_second(server.port, n, options.seconds) for server in pair}
                    for server, speed in got.items():
                        speeds[server].append(speed)
                    ratios.append(got[second] / got[first])
            medians = [statistics.median(speeds[server]) for server in (first, second)]
            print(f"{n:7}{medians[0]:13.0f}{medians[1]:13.0f}{statistics.median(ratios):6.3f}   "
                  f"{' '.join(f'{ratio:.2f}' for ratio in sorted(ratios))}", flush=True)


if __name__ == "__main__":
    main()
