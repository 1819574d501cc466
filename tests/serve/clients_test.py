"""Other people's clients against `fovea serve`, called as users do.

    clients_test.py FOVEA GOLDEN_DIR [NAME...]                             those installed here; status 77 where none is
    clients_test.py FOVEA GOLDEN_DIR --install FOLDER DOCUMENT [all|NAME...]  the newest, in environments of their own

The second installs the quick clients, all, or those named, and goes on where a package cannot be had. With `all` it writes the
table of DOCUMENT. A client's name is its class here.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import clients_agents
import clients_apis
import clients_programs
import clients_wrappers
from client import Server
from clients_cases import OFFLINE, Client, Shared

# The letters of the table, for tests by their names.
CALLS = {"chat": "C", "stream": "S", "tools": "T", "form": "F", "completion": "G", "responses": "R", "messages": "M",
         "vectors": "V", "rerank": "K", "speech": "H", "chances": "L", "errors": "E"}
BEGIN, END = "<!-- clients: ./dev clients all -->\n", "<!-- clients end -->\n"


def all_clients():
    """Every client by its name, in the order of the files."""
    modules = (clients_apis, clients_wrappers, clients_agents, clients_programs)
    classes = [one for module in modules for one in vars(module).values() if isinstance(one, type) and issubclass(one, Client)]
    return {one.__name__: one for one in classes if one.PACKAGES}


class Result(unittest.TextTestResult):
    def __init__(self, *arguments, **fields):
        super().__init__(*arguments, **fields)
        self.passed = []

    def addSuccess(self, test):  # noqa: N802, unittest's name
        super().addSuccess(test)
        self.passed.append(test._testMethodName)


def run_here(clients):
    """Runs the tests of these clients against one server; the calls that did as they should, by client."""
    with tempfile.TemporaryDirectory() as scratch:
        models = {}
        for name, source in (("bert", "encoders/bert_sentence"), ("ranker", "encoders/bert_sequenceclassification"),
                             ("talking", "speech/whisper_talking")):
            models[name] = os.path.join(scratch, name + ".fovea")
            subprocess.run([Shared.fovea, "convert", os.path.join(Shared.golden, source), "-o", models[name]], check=True,
                           capture_output=True)
        Shared.speech = models["talking"]
        rows, n_tests, failed = {}, 0, False
        with Server(Shared.fovea, "demo=", *models.values()) as Shared.server:
            for client in clients:
                suite = unittest.defaultTestLoader.loadTestsFromTestCase(client)
                result = unittest.TextTestRunner(verbosity=2, resultclass=Result, warnings="ignore").run(suite)
                rows[client.__name__] = {"version": client.version(), "passed": result.passed}
                n_tests += result.testsRun
                failed = failed or not result.wasSuccessful()
        return {"rows": rows, "n_tests": n_tests, "failed": failed}


def install(packages, place, folder):
    """Puts packages of npm or PyPI into an environment; a line that says why it cannot, or an empty one."""
    if place == clients_programs.NodeClient.PLACE:
        command = ["npm", "install", "--prefix", os.path.join(folder, place), "--silent", "--no-fund", "--no-audit"]
        command += [name + "@latest" for name in packages]
    else:
        pip = os.path.join(folder, "pip")
        for made, more in ((pip, []), (os.path.join(folder, place), ["--without-pip"])):
            if not os.path.isdir(made):
                subprocess.run([sys.executable, "-m", "venv", *more, made], check=True)
        command = [os.path.join(pip, "bin", "pip"), "--python", os.path.join(folder, place, "bin", "python"), "install", "-q",
                   "--no-compile", "--upgrade", *packages]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return f"expected {command[0]}, got none"
    lines = [line for line in (done.stderr or done.stdout).splitlines() if "error" in line.lower()]
    return (lines or ["its packages cannot be installed"])[0] if done.returncode else ""


def install_clients(clients, place, folder):
    """Installs the clients of one environment, one by one where they cannot be had together; those that are there."""
    if not install([name for client in clients for name in client.PACKAGES], place, folder):
        return clients
    there = []
    for client in clients:
        if why := install(client.PACKAGES, place, folder):
            print(f"{client.__name__}: without, {why}", flush=True)
        else:
            there.append(client)
    return there


def run_installed(clients, folder):
    """Installs clients and runs their tests; the table's rows and whether something failed."""
    rows, n_tests, failed = {client.__name__: {"version": "not to be had", "passed": []} for client in clients}, 0, []
    for place in dict.fromkeys(client.environment() for client in clients):
        group = [client for client in clients if client.environment() == place]
        there = install_clients(group, place, folder)
        if os.environ.get("CI") and (place != clients_programs.NodeClient.PLACE or shutil.which("npm")):
            failed += [client.__name__ for client in group if client not in there]
        if not there:
            continue
        names = [client.__name__ for client in there]
        own = os.path.join(folder, place, "bin", "python")
        command = [own if os.path.exists(own) else sys.executable, "-B", __file__, Shared.fovea, Shared.golden, *names]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, "FOVEA_NODE_CLIENTS": os.path.join(folder, place)})
        try:
            told = json.loads(done.stdout.splitlines()[-1])
        except (IndexError, ValueError):
            told = {"rows": {}, "n_tests": 0, "failed": True}
        rows.update(told["rows"])
        n_tests += told["n_tests"]
        for name in names:
            print(f"{name} {rows[name]['version']}: {letters(rows[name]) or 'nothing'}", flush=True)
        if told["failed"] or done.returncode:
            failed += names
            print(done.stdout, flush=True)
    print(f"Ran {n_tests} tests of {len(rows)} clients")
    print(f"FAILED ({', '.join(failed)})" if failed else "OK")
    return rows, bool(failed)


def letters(row):
    """The calls of a row, each once, in the order of CALLS."""
    words = {re.match("test_([a-z]+)", name)[1] for name in row["passed"]}
    return "".join(letter for word, letter in CALLS.items() if word in words)


def write_table(document, rows):
    """Writes the rows between the document's marks."""
    lines = []
    for name, row in rows.items():
        shown = all_clients()[name].PACKAGES[0].partition("[")[0]
        if issubclass(all_clients()[name], clients_programs.NodeClient):
            shown += " (Node)"
        lines.append(f"| {shown} | {row['version']} | {letters(row)} |")
    lines = ["| client | version | calls |", "| --- | --- | --- |", *sorted(lines)]
    with open(document, encoding="utf-8") as file:
        text = file.read()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    with open(document, "w", encoding="utf-8") as file:
        file.write(text[:begin] + "\n" + "\n".join(lines) + "\n\n" + text[end:])


def main(arguments):
    Shared.fovea, Shared.golden = map(os.path.abspath, arguments[:2])
    os.environ.update(OFFLINE)
    if arguments[2:3] == ["--install"]:
        folder, document, *names = arguments[3:]
        is_all = names == ["all"]
        if is_all or not names:
            names = [name for name, client in all_clients().items() if is_all or client.IS_QUICK]
        if unknown := [name for name in names if name not in all_clients()]:
            sys.exit(f"clients: expected some of {', '.join(all_clients())}, got {', '.join(unknown)}")
        os.makedirs(folder, exist_ok=True)
        rows, failed = run_installed([all_clients()[name] for name in names], os.path.abspath(folder))
        if is_all:
            write_table(document, rows)
        return int(failed)
    names = arguments[2:] or [name for name, client in all_clients().items() if client.is_there()]
    clients = [client for name, client in all_clients().items() if name in names]
    if not clients:
        print("skipped: no client is installed")
        return 77
    done = run_here(clients)
    print(json.dumps(done))
    return int(done["failed"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
