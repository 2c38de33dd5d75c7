#!/usr/bin/env python3
"""The PyTorch peers of benchmarks/peers run and print sensible lines: tiny networks, two steps.

    peers_test.py [CASE]      a method of Peers without its test_; exit code 77: all were skipped
"""
import importlib.util
import json
import math
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import unittest

PEERS = pathlib.Path(__file__).resolve().parent.parent.parent / "benchmarks/peers"
BRIEF = ["--steps", "2", "--warmup", "1"]
LIMIT_SECONDS = 120  # on a machine that other programs share
# In place of transformer_step: twice 100 tokens/s whatever it is asked.
STEP_PROGRAM = """#!/bin/sh
echo '{"median_step_s": 0.1, "samples_per_s": 10, "tokens_per_s": 200, "peak_rss_mb": 1,'\\
     '"process_to_first_step_s": 0.1}'
"""


def needs(module):
    return unittest.skipUnless(importlib.util.find_spec(module), f"needs the package {module}")


def mpi_compiles():
    if not shutil.which("mpicc"):
        return False
    command = ["mpicc", "-fsyntax-only", "-x", "c", "-"]
    return subprocess.run(command, input="#include <mpi.h>\n", text=True,
                          capture_output=True).returncode == 0


def start(command, **variables):
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", **variables)
    return subprocess.Popen(list(map(str, command)), env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def ended(process):
    try:
        output, errors = process.communicate(timeout=LIMIT_SECONDS)
    finally:
        process.kill()
    if process.returncode != 0:
        raise AssertionError(f"{process.args}: {errors}")
    return output


def run(script, *words):
    return ended(start([sys.executable, PEERS / script, *words]))


def run_two(script, *words):
    """What rank 0 of two prints; rank 1 prints nothing."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    ranks = [start([sys.executable, PEERS / script, *words], RANK=str(rank), WORLD_SIZE="2",
                   LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                   GLOO_SOCKET_IFNAME="lo") for rank in range(2)]
    try:
        outputs = [ended(process) for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    assert outputs[1] == "", outputs[1]
    return outputs[0]


class Peers(unittest.TestCase):
    def check_step(self, output, **expected):
        line = json.loads(output)  # one line and nothing else
        for key, value in expected.items():
            self.assertEqual(line[key], value, key)
        low, high = line["quartiles_step_s"]
        self.assertTrue(0 < line["min_step_s"] <= low <= line["median_step_s"] <= high < 60, line)
        # Two steps: their mean is their median.
        samples = line["samples_per_s"] * line["median_step_s"]
        self.assertAlmostEqual(samples, round(2 * samples) / 2, places=6)
        self.assertTrue(0 < line["loss"] < math.inf, line)
        self.assertTrue(20 < line["peak_rss_mb"] < 8000, line)
        self.assertTrue(line["torch"][0].isdigit(), line)
        self.assertTrue(line["processor"], line)
        return samples, line

    def test_translation(self):
        words = ["--size", "tiny", "--dtype", "fp32", *BRIEF]
        _, line = self.check_step(run("translation.py", *words), workload="nmt-tiny", steps=2,
                                  precision="fp32", world=1, threads=1, library="torch")
        # Batches of 60 target tokens and what makes the last pair whole.
        self.assertTrue(60 <= line["tokens_per_s"] * line["median_step_s"] < 160, line)
        self.assertLess(abs(line["loss"] - math.log(100)), 1.5)

    @needs("transformers")
    def test_translation_of_transformers(self):
        words = ["--size", "tiny", "--library", "transformers", *BRIEF]
        _, line = self.check_step(run("translation.py", *words), precision="bf16",
                                  library="transformers")
        self.assertLess(abs(line["loss"] - math.log(100)), 1.5)

    def test_translation_of_two_ranks(self):
        words = ["--size", "tiny", "--dtype", "fp32", *BRIEF]
        _, line = self.check_step(run_two("translation.py", *words), world=2)
        self.assertTrue(120 <= line["tokens_per_s"] * line["median_step_s"] < 320, line)

    def test_resnet(self):
        words = ["--model", "resnet18", "--size", "32", "--batch", "4", *BRIEF]
        samples, line = self.check_step(run("images.py", *words), workload="resnet18-32",
                                        precision="bf16")
        self.assertAlmostEqual(samples, 4, places=6)
        self.assertNotIn("tokens_per_s", line)

    def test_vit(self):
        words = ["--model", "vit_ti", "--size", "32", "--batch", "3", *BRIEF]
        samples, line = self.check_step(run("images.py", *words), workload="vit_ti-32")
        self.assertAlmostEqual(samples, 3, places=6)
        self.assertLess(abs(line["loss"] - math.log(1000)), 1.5)

    @needs("transformers")
    def test_vit_of_transformers(self):
        words = ["--model", "vit_ti", "--size", "32", "--batch", "3", "--library", "transformers"]
        self.check_step(run("images.py", *words, *BRIEF), library="transformers")

    @needs("transformers")
    def test_text(self):
        words = ["--size", "tiny", "--batch", "4", "--length", "8", *BRIEF]
        samples, line = self.check_step(run("text.py", *words), workload="bert-tiny")
        self.assertAlmostEqual(samples, 4, places=6)
        self.assertAlmostEqual(line["tokens_per_s"] / line["samples_per_s"], 8, places=6)
        self.assertLess(abs(line["loss"] - math.log(2)), 0.5)

    @needs("transformers")
    def test_text_of_given_lengths(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "lengths.txt")
            file.write_text("3 9\n5 7\n")
            words = ["--size", "tiny", "--lengths", file, *BRIEF]
            samples, line = self.check_step(run("text.py", *words), workload="bert-tiny-lengths")
        self.assertAlmostEqual(samples, 2, places=6)
        self.assertAlmostEqual(line["tokens_per_s"] / line["samples_per_s"], 6, places=6)

    def test_all_reduce(self):
        line = json.loads(run_two("all_reduce.py", "--seconds", "0.02", "--kilobytes", "4,64"))
        self.assertEqual([s["bytes"] for s in line["sizes"]], [4096, 65536])
        for size in line["sizes"]:
            low, high = size["quartiles_us"]
            self.assertTrue(0 < low <= size["median_us"] <= high < 1e6, line)

    @unittest.skipUnless(mpi_compiles(), "needs MPI's compiler and headers")
    def test_all_reduce_of_mpi(self):
        with tempfile.TemporaryDirectory() as folder:
            program = f"{folder}/all_reduce_mpi"
            ended(start(["mpicc", "-Wall", "-Werror", "-O2", PEERS / "all_reduce_mpi.c", "-o",
                         program]))
            # Of one rank, as `mpirun -n 1`: it needs neither ssh nor two cores.
            line = json.loads(ended(start([program, "0.02", "64"])))
        self.assertEqual([s["bytes"] for s in line["sizes"]], [4096, 65536])
        self.assertTrue(all(s["median_us"] >= 0 for s in line["sizes"]), line)

    @needs("PIL")
    def test_load_images(self):
        from PIL import Image

        with tempfile.TemporaryDirectory() as folder:
            for name in ("a", "b"):
                pathlib.Path(folder, name).mkdir()
                for i in range(3):
                    Image.new("RGB", (20 + i, 30), (40 * i, 0, 9)).save(f"{folder}/{name}/{i}.jpg")
            words = [folder, "--size", "16", "--epochs", "1", "--batch", "2"]
            line = json.loads(run("load_images.py", *words))
        self.assertEqual(line["images"], 6)
        self.assertGreater(line["images_per_s"], 0)

    def test_ratio(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "benchmarks/transformer_step")
            program.parent.mkdir()
            program.write_text(STEP_PROGRAM)
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
            output = run("ratio", "translation", "--size", "tiny", "--build", folder, "--python",
                         sys.executable, "--rounds", "2", "--rows", "1x1-fp32", "--peers", "torch",
                         "--allocator", "none", "--steps", "2", "--warmup", "1", "--out",
                         f"{folder}/out.jsonl")
            lines = [json.loads(line) for line in open(f"{folder}/out.jsonl", encoding="utf-8")]
        names = [line["name"] for line in lines]
        self.assertEqual(names, ["lockstep", "lockstep", "torch", "torch"])
        rates = [line["tokens_per_s"] for line in lines]
        ratios = sorted([rates[0] / rates[2], rates[1] / rates[3]])
        words = (f"{sum(ratios) / 2:.2f} ({ratios[0]:.2f} to {ratios[1]:.2f}) times torch")
        self.assertIn(words, output)
        self.assertIn(lines[2]["processor"], output.splitlines()[0])


def main():
    suite = unittest.TestLoader().loadTestsFromNames(
        [f"Peers.test_{name}" for name in sys.argv[1:]] or ["Peers"], sys.modules[__name__])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == result.testsRun else 0)


if __name__ == "__main__":
    main()
