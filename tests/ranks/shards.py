"""Models that are cut up, a part for each rank."""
import json
import os
import shutil

from jobs import DEMO, FOVEA, GOLDEN, Jobs, lines_of, parts, ranks, run

LOGITS = ["--tokens", "1,2,3,4,5,6,7", "--threads", "1", "--json"]


class Shards(Jobs):
    def cut(self, model, n, *how):
        """Where the parts of a model lie, each behind this path and its rank."""
        place = os.path.join(self.folder.name, "_".join(["cut", os.path.basename(model), str(n), *how]).replace("--", ""))
        if not os.path.exists(f"{place}.0of{n}"):
            run([FOVEA, "convert", model, "--shard", str(n), "-o", place, *how])
        return place

    def hash(self, said):
        return json.loads(said[0])["hash"]

    def test_bits(self):
        """Ranks open their parts, which say how they were cut up; a whole model is as good as any part of it."""
        for source in (DEMO, *(os.path.join(GOLDEN, name) for name in ("models/llama_wide_heads", "families/mixtral"))):
            model = self.convert(source, "--type", "f32")
            want = self.hash(run([FOVEA, "logits", model, *LOGITS]))
            for n, *how in ((2,), (3, "--shares", "1,5,2"), (4, "--stages", "2")):
                place = self.cut(model, n, *how)
                with self.subTest(model=source, n=n, how=how):
                    self.assertEqual(self.hash(ranks(n, "logits", place, *LOGITS, "--verify")), want)
            some = [["logits", of, *LOGITS] for of in (model, f"{self.cut(model, 2)}.1of2")]
            self.assertEqual(self.hash(parts(*some)), want)

    def test_sizes(self):
        """A part has no block of the whole that all ranks but its own read."""
        model = self.convert(DEMO, "--type", "f32")
        planned = json.loads(run([FOVEA, "plan", model, "--machines", "4", "--json"])[0])["ranks"]
        for how in ([], ["--stages", "4"]):
            for rank in range(4):
                size = os.path.getsize(f"{self.cut(model, 4, *how)}.{rank}of4")
                self.assertLess(size, os.path.getsize(model) - 3 * 65536)
                self.assertGreater(size, 0 if how else planned[rank]["matrix_bytes"])

    def refused(self, said, word):
        self.assertEqual(len(lines_of(said)), 1, said)
        self.assertIn(word, said)

    def test_refusals(self):
        model, other = self.convert(DEMO, "--type", "f32"), self.convert(DEMO, "--type", "f16")
        place, uneven = self.cut(model, 2), self.cut(model, 2, "--shares", "3,1")

        def logits(path, *how):
            return ["logits", path, *LOGITS, *how]

        self.refused(run([FOVEA, *logits(f"{place}.0of2")], want=1)[1], "got the part of rank 0 of 2 in one process")
        self.refused(parts(logits(f"{place}.1of2"), logits(f"{place}.0of2"), want=1)[1],
                     "expected the part of rank 0 of 2, got that of rank 1 of 2")
        self.refused(ranks(3, *logits(f"{place}.0of2"), want=1)[1], "expected the part of rank 0 of 3")
        self.refused(parts(logits(f"{place}.0of2"), logits(f"{self.cut(other, 2)}.1of2"), want=1)[1],
                     "rank 1: bytes of the model: expected")
        self.refused(parts(logits(f"{place}.0of2"), logits(f"{uneven}.1of2"), want=1)[1],
                     "rank 1: shares: expected even ones, which rank 0 has, got 3,1")
        self.refused(ranks(2, *logits(place, "--shares", "1,2"), want=1)[1], "expected those that the model was cut up by")
        draft = ["run", model, "--tokens", "1,2", "-n", "2", "--speculate", "2", "--draft", place]
        self.refused(ranks(2, *draft, want=1)[1], "draft: expected a whole model, got a rank's part of one")
        self.refused(ranks(2, *logits(f"{self.folder.name}/none"), want=1)[1], "no such file")
        for how, word in (("--type f16", "a type of weights"), ("--shares speed", "expected numbers")):
            said = run([FOVEA, "convert", model, "--shard", "2", "-o", place, *how.split()], want=2)[1]
            self.refused(said, word)
        self.refused(run([FOVEA, "convert", model, "--shares", "3,1", "-o", f"{place}x"], want=2)[1], "expected --shard")

    def test_damage(self):
        place = self.cut(self.convert(DEMO, "--type", "f32"), 2)
        size = os.path.getsize(f"{place}.1of2")
        damaged = os.path.join(self.folder.name, "damaged")
        shutil.copy(f"{place}.0of2", f"{damaged}.0of2")
        for at, end, word in ((12, size, "checksum of a part's head"), (size - 5, size, "checksum of a part's blocks"),
                              (None, size - 1, "bytes of a part of a model: expected"),
                              (None, 100, "bytes of a part of a model at least")):
            with open(f"{place}.1of2", "rb") as file:
                content = bytearray(file.read())[:end]
            if at is not None:
                content[at] ^= 1
            with open(f"{damaged}.1of2", "wb") as file:
                file.write(content)
            with self.subTest(word=word):
                self.refused(ranks(2, "logits", damaged, *LOGITS, "--verify", want=1)[1], f"rank 1: {damaged}.1of2: {word}")
