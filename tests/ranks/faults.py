"""Ranks that die, stall, or cannot write."""
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import time

from jobs import DEMO, FOVEA, Jobs, lines_of, mpirun, ranks, run, runs
from namespaces import Namespaces, can_have_namespaces


class Faults(Jobs):
    def children(self, job, n):
        """The processes of a job's ranks, in their order."""
        children, end = [], time.monotonic() + 60
        while len(children) < n and time.monotonic() < end:
            found = subprocess.run(["ps", "--ppid", str(job.pid), "-o", "pid=,comm="], capture_output=True, text=True)
            lines = [line.split() for line in found.stdout.splitlines()]
            children = [int(pid) for pid, name in lines if name == os.path.basename(FOVEA)[:15]]
        self.assertEqual(len(children), n)
        return children

    def long(self, n, quiet=True, seconds=3.0, how=()):
        """A job of minutes, and its ranks' processes, so many seconds later."""
        model = self.convert(DEMO, "--type", "f32")
        job = subprocess.Popen([*mpirun(n, quiet), FOVEA, "bench", model, "-p", "8", "-n", "100", "--repeat", "1000",
                                "--threads", "1", *how], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(self.end, job)
        children = self.children(job, n)
        time.sleep(seconds)
        return job, children

    def ended(self, job, children):
        """What was said at the end, within ten seconds, with no process left."""
        started = time.monotonic()
        said = job.communicate(timeout=10)[1].decode()
        self.assertNotEqual(job.returncode, 0)
        while (left := [child for child in children if runs(child)]) and time.monotonic() < started + 10:
            time.sleep(0.05)
        self.assertEqual(left, [])
        return said

    def test_death(self):
        """The launcher names a rank that is killed, as it starts or computes. With -q it would not."""
        moments = int(os.environ.get("FOVEA_DEATHS", "2"))
        for moment in range(moments):
            how = ["--stages", "3"] if moment % 2 else []
            jobs = [self.long(3, False, 0, how) for _ in range(3)]
            for victim, (_, children) in enumerate(jobs):
                time.sleep(random.random() * 0.7)
                os.kill(children[victim], signal.SIGKILL)
            for victim, (job, children) in enumerate(jobs):
                with self.subTest(victim=victim, moment=moment):
                    said = self.ended(job, children)
                    self.assertEqual(said.count(f"process rank {victim} "), 1, said)
                    self.assertNotIn("fovea: ", said)
            self.assertEqual(os.listdir(self.shared.name), [])

    def test_silence(self):
        jobs = [self.long(3, seconds=0, how=["--stages", "3"] if victim == 1 else []) for victim in range(3)]
        end = time.monotonic() + 60
        while len(os.listdir(self.shared.name)) < 9 and time.monotonic() < end:  # each rank's, once it has joined the others
            time.sleep(0.1)
        time.sleep(3)
        for victim, (_, children) in enumerate(jobs):
            os.kill(children[victim], signal.SIGSTOP)
        stopped = time.monotonic()
        for victim, (job, children) in enumerate(jobs):
            with self.subTest(victim=victim):
                said = self.ended(job, children)
                self.assertLess(time.monotonic(), stopped + 11)
                self.assertEqual(len(set(lines_of(said))), 1, said)  # a busy machine lets another rank say it, too
                self.assertIn(f"fovea: rank {victim} on {socket.gethostname()}: expected a sign of life", said)
        self.assertEqual(os.listdir(self.shared.name), [])

    def test_link_cut(self):
        """A network whose cable is pulled, where this machine can have networks of its own."""
        if not can_have_namespaces():
            self.skipTest("no network namespaces")
        model = self.convert(DEMO, "--type", "f32")
        with Namespaces(2) as machines:
            job = subprocess.Popen([*machines.mpirun, "-n", "2", FOVEA, "bench", model, "-p", "8", "-n", "100", "--repeat", "1000",
                                    "--threads", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self.addCleanup(self.end, job)
            began = time.monotonic()
            while not all(machines.ranks(i) for i in range(2)) and time.monotonic() < began + 60:
                time.sleep(0.05)
            time.sleep(3)
            machines.cut(1)
            cut = time.monotonic()
            said = job.communicate(timeout=10)[1].decode()
            while any(machines.ranks(i) for i in range(2)) and time.monotonic() < cut + 10:
                time.sleep(0.05)
            self.assertEqual([machines.ranks(i) for i in range(2)], [[], []])
            self.assertLess(time.monotonic(), cut + 10)
            self.assertNotEqual(job.returncode, 0)
            self.assertRegex(said, "fovea: rank 1 on |Remote daemon: .* on node " + machines.address(1))

    def test_saved_session(self):
        """A rank that is killed leaves the file of a session as it was, or as it is to be."""
        begin = ["run", DEMO, "--quiet", "--context", "256", "-n", "40", "--threads", "1"]
        first, more = "turn on the reading lamp", "turn on the reading lamp in the office at half past seven"
        before, after, kept = (os.path.join(self.folder.name, name) for name in ("before", "after", "kept"))
        run([FOVEA, *begin, "-p", first, "--session", before])
        shutil.copy(before, after)
        run([FOVEA, *begin, "-p", more, "--session", after])
        wanted = [pathlib.Path(path).read_bytes() for path in (before, after)]
        self.assertNotEqual(*wanted)
        for victim in range(3):
            shutil.copy(before, kept)
            job = subprocess.Popen([*mpirun(3), FOVEA, *begin, "-p", more, "--session", kept],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            children = self.children(job, 3)
            time.sleep(random.random())
            if runs(children[victim]):
                os.kill(children[victim], signal.SIGKILL)
            job.wait(timeout=20)
            with open(kept, "rb") as file:
                self.assertIn(file.read(), wanted)
            shutil.copy(before, kept)
            ranks(2, *begin, "-p", more, "--session", kept)
            with open(kept, "rb") as file:
                self.assertEqual(file.read(), wanted[1])

    def test_batch_again(self):
        """What was answered before a rank was killed stays, and another number of ranks goes on."""
        asked, wanted = (os.path.join(self.folder.name, name) for name in ("many.jsonl", "many_wanted.jsonl"))
        with open(asked, "w") as file:
            for i in range(400):
                print(json.dumps({"prompt": f"turn on lamp {i}", "max_tokens": 40, "ignore_eos": True}), file=file)
        batch = ["run", DEMO, "--batch", asked, "--quiet", "--threads", "1", "-o"]
        run([FOVEA, *batch, wanted])
        with open(wanted, "rb") as file:
            want = file.read()
        for victim in range(3):
            made = os.path.join(self.folder.name, f"many_{victim}.jsonl")
            job = subprocess.Popen([*mpirun(3), FOVEA, *batch, made], stderr=subprocess.PIPE)
            self.addCleanup(self.end, job)
            end = time.monotonic() + 60
            while time.monotonic() < end and (not os.path.exists(made) or os.path.getsize(made) < 2000):
                time.sleep(0.01)
            os.kill(self.children(job, 3)[victim], signal.SIGKILL)
            job.communicate(timeout=10)
            with open(made, "rb") as file:
                begun = file.read()
            self.assertTrue(want.startswith(begun[:begun.rindex(b"\n") + 1]))
            self.assertLess(len(begun), len(want))
            ranks(2, *batch, made)
            with open(made, "rb") as file:
                self.assertEqual(file.read(), want)

    def test_full_disk(self):
        texts = os.path.join(self.folder.name, "full.jsonl")
        with open(texts, "w") as file:
            print(json.dumps({"prompt": "turn on the lamp"}), file=file)
        for arguments in (["run", DEMO, "--batch", texts, "--quiet", "-o", "/dev/full"],
                          ["logits", DEMO, "-p", "x", "-o", "/dev/full"]):
            _, said = ranks(3, *arguments, want=1)
            self.assertEqual(said.count("fovea: "), 1, said)
            self.assertIn("fovea: /dev/full: ", said)

    def test_sleep(self):
        job, children = self.long(2)
        os.kill(children[1], signal.SIGSTOP)
        try:
            time.sleep(0.5)

            def used():
                with open(f"/proc/{children[0]}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

            before = used()
            time.sleep(3)
            self.assertLess(used() - before, 0.45)
        finally:
            os.kill(children[1], signal.SIGCONT)
