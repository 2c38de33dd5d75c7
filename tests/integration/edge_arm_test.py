#!/usr/bin/env python3
"""lockstep-translate built for an ARM processor and run by qemu translates as the one of this machine.

    edge_arm_test.py PROGRAM SOURCE BUILD aarch64|armv7

PROGRAM is lockstep, beside which lockstep-translate lies; BUILD/edge-aarch64 (or -armv7) is where the
other one is built, once. Exit code 77, with the reason, where the cross compiler, qemu or SentencePiece's
source are missing.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# Of each processor: Debian's name of it, qemu's, the loader's file, and its kernels, best first.
MACHINES = {
    "aarch64": ("aarch64-linux-gnu", "aarch64", "ld-linux-aarch64.so.1", ["neon_dot", "generic"]),
    "armv7": ("arm-linux-gnueabihf", "arm", "ld-linux-armhf.so.3", ["generic"]),
}
NUMBERS = "one two three four five six seven eight nine ten".split()
CONFIG = """[run]
device = "cpu"
precision = "fp32"
[model]
d_model = 32
heads = 2
encoder_layers = 1
decoder_layers = 1
feed_forward = 48
[batch]
tokens = 64
[training]
steps = 3
[evaluation]
every = 0
"""


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def run(*command, cwd=None, **environment):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=1200,
                          cwd=cwd, env=dict(os.environ, **environment))
    if done.returncode != 0:
        sys.exit(f"{command}: exit code {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def main():
    program, source, build = map(pathlib.Path, sys.argv[1:4])
    machine = sys.argv[4]
    debian, processor, loader, kernels = MACHINES[machine]
    qemu = f"qemu-{processor}-static"
    native = program.parent / "lockstep-translate"
    for name in (f"{debian}-g++", qemu):
        if not shutil.which(name):
            skip(f"no {name} (apt-get install g++-{debian} qemu-user-static)")
    if not native.exists():
        skip("lockstep-translate is not built: no source of SentencePiece")
    other = build / f"edge-{machine}"
    run("cmake", "--preset", f"edge-{machine}", "-B", other, cwd=source)
    run("cmake", "--build", other, cwd=source)
    arm = [qemu, "-L", f"/usr/{debian}", "-cpu", "max", other / "lockstep-translate"]
    needed = run(f"{debian}-readelf", "-d", other / "lockstep-translate")
    libraries = {line.split("[")[1].split("]")[0] for line in needed.splitlines() if "(NEEDED)" in line}
    allowed = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "libpthread.so.0", loader}
    assert libraries <= allowed, libraries
    assert f", kernels {kernels[0]}" in run(*arm, "--version")
    with tempfile.TemporaryDirectory(prefix="lockstep-edge-") as name:
        folder = pathlib.Path(name)
        lines = [" ".join(NUMBERS[(i * k + k) % 10] for k in range(1, 4 + i % 5)) for i in range(12)]
        for side in ("en", "de"):
            (folder / f"t.{side}").write_text("\n".join(lines) + "\n")
        (folder / "tiny.toml").write_text(CONFIG)
        both = ["t.en", "t.de"]
        run(program, "prepare", "text", *both, "--out", "corpus", "--vocab", "36", "--dev", *both, "--test",
            *both, cwd=folder)
        run(program, "train", "tiny.toml", "data.corpus=corpus", "run.folder=run", cwd=folder)
        for precision in ("fp32", "bf16", "int8"):
            run(program, "export", "run", "--format", "edge", "--precision", precision, "--out", precision,
                cwd=folder)
            words = [precision, "--input", "t.en", "--n-best", "2", "--threads", "2"]
            # Sums of another order: the texts are equal, the scores nearly.
            want = [line.split(" ||| ") for line in run(native, *words, cwd=folder).splitlines()]
            assert len(want) == 24, want
            for isa in kernels:
                found = [line.split(" ||| ") for line in
                         run(*arm, *words, cwd=folder, LOCKSTEP_ISA=isa).splitlines()]
                assert [f[:2] for f in found] == [w[:2] for w in want], (precision, isa, found, want)
                worst = max(abs(float(f[2]) - float(w[2])) for f, w in zip(found, want))
                assert worst < (1e-4 if precision != "bf16" else 2e-2), (precision, isa, worst)
    print("passed")


main()
