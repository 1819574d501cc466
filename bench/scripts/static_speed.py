#!/usr/bin/env python3
"""What the hot loops of the AArch64 kernels would take on a core that llvm-mca models: no measurement, a comparison.

    bench/scripts/static_speed.py BUILD [--objdump aarch64-linux-gnu-objdump] [--mca llvm-mca-19] [--mcpu neoverse-n1]

Takes the innermost loop with the most products out of a function of an instruction set's object in BUILD and prints, as
a row of docs/kernels.md's table: products (multiply-accumulates) per cycle with everything in the first-level cache, of
the whole loop and of its products alone, from the first to the last; instructions per product; and how many of the
loop's instructions touch the stack through a vector register, which are spills.
"""
import argparse
import pathlib
import re
import subprocess

# instruction set, kernel, function, instruction that multiplies and adds, products of one such instruction
LOOPS = [
    ("neon", "f32, 6 x 16", r"two_panels<float>", "fmla", 4),
    ("neon", "q8, 2 x 16", r"(many_rows|block_product<2u).*Superblock<.*3>", "smull|smlal", 8),
    ("neon", "q4, 2 x 16", r"(many_rows|block_product<2u).*Superblock<.*4>", "smull|smlal", 8),
    ("neon_dotprod", "q8, 6 x 16", r"(many_rows|block_product<6u).*WideSuperblock<.*3>|many_rows<.*Superblock<.*3>", "sdot", 16),
    ("neon_dotprod", "q8, one row", r"(few_rows|block_product)<1u.*Superblock<.*3>", "sdot", 16),
    ("neon_i8mm", "q8, 6 x 16", r"(many_rows|block_product<6u).*WideSuperblock<.*3>|many_rows<.*Superblock<.*3>", "smmla", 32),
]


def loops_of(body):
    """Innermost loops as lists of instructions; body: lines of objdump."""
    at = {}
    for i, line in enumerate(body):
        if m := re.match(r"\s*([0-9a-f]+):", line):
            at[int(m.group(1), 16)] = i
    spans = []
    for i, line in enumerate(body):
        m = re.search(r"\s(?:b\.\w+\s+|b\s+|cbn?z\s+\w+, |tbn?z\s+[^,]+, [^,]+, )([0-9a-f]+) <", line)
        if m and int(m.group(1), 16) in at and at[int(m.group(1), 16)] <= i:
            spans.append((at[int(m.group(1), 16)], i))
    inner = [s for s in spans if not any(t != s and s[0] <= t[0] and t[1] <= s[1] for t in spans)]
    return [[line.split("\t", 1)[1] for line in body[a:b + 1]] for a, b in inner]


def cycles(instructions, arguments):
    """Cycles of one repetition."""
    text = "\n".join(re.sub(r"\b[0-9a-f]+ <.*", "0", i.split("//")[0]) for i in instructions) + "\n"
    repetitions = 200
    out = subprocess.run(
        [arguments.mca, "-mtriple=aarch64", f"-mcpu={arguments.mcpu}", "-mattr=+dotprod,+i8mm",
         f"-iterations={repetitions}"], input=text, capture_output=True, text=True, check=True).stdout
    return int(re.search(r"Total Cycles:\s+(\d+)", out).group(1)) / repetitions


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--objdump", default="aarch64-linux-gnu-objdump")
    parser.add_argument("--mca", default="llvm-mca-19")
    parser.add_argument("--mcpu", default="neoverse-n1")
    arguments = parser.parse_args()
    print("| table | loop | products a cycle, loop | products alone | instructions a product | spills |\n"
          "| --- | --- | --- | --- | --- | --- |")
    for isa, kernel, function, instruction, products in LOOPS:
        (obj,) = pathlib.Path(arguments.build).glob(f"CMakeFiles/fovea_{isa}.dir/**/{isa}.cpp.o")
        text = subprocess.run([arguments.objdump, "-dC", "--no-show-raw-insn", obj], capture_output=True, text=True,
                              check=True).stdout
        bodies = [f.split("\n") for f in re.split(r"\n(?=[0-9a-f]+ <)", text)
                  if re.search(function, f.split("\n", 1)[0].replace("(anonymous namespace)::", ""))]
        works = lambda loop: [i for i, line in enumerate(loop) if re.match(instruction, line)]
        loop = max((loop for body in bodies for loop in loops_of(body)), key=lambda loop: len(works(loop)))
        n = len(works(loop)) * products
        alone = loop[works(loop)[0]:works(loop)[-1] + 1]
        spills = sum(bool(re.match(r"(ld|st)\w+\s+[qdv]\d.*\[sp", line)) for line in loop)
        print(f"| {isa} | {kernel} | {n / cycles(loop, arguments):.1f} | {n / cycles(alone, arguments):.1f} | "
              f"{len(loop) / n:.3f} | {spills} |")


if __name__ == "__main__":
    main()
