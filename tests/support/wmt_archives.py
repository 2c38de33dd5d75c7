#!/usr/bin/env python3
"""Makes archives laid out as WMT's, small or large, to prepare without the network.

    wmt_archives.py OUT --pairs N [--data FOLDER] [--test-lines N]

OUT/europarl/v7/de-en.tgz and so on (src/data/parallel/wmt_archives.cpp), OUT/SHA256SUMS, and the texts as
plain files in OUT/text/train.{en,de} for a comparison with --text. With --data (a folder with
*/train*.en.gz and wmt-newstest/) the pairs are those, then copies in which words are exchanged
between lines; without, sentences made of a few hundred words. Beside them: some repeated pairs,
empty lines, lines of more than 80 words and pairs of another language.
"""
import argparse
import glob
import gzip
import hashlib
import io
import os
import pathlib
import random
import tarfile

ARCHIVES = (("europarl/v7/de-en.tgz", "europarl-v7.de-en", 0.42),
            ("wmt13/training-parallel-commoncrawl.tgz", "commoncrawl.de-en", 0.95),
            ("wmt16/translation-task/training-parallel-nc-v11.tgz",
             "training-parallel-nc-v11/news-commentary-v11.de-en", 1.0))
NOISE = (("", "leer"), ("So viele Leute sind nicht auf der Straße und das ist gut",
                        "So viele Leute sind nicht auf der Straße und das ist gut"),
         ("word " * 81, "Wort " * 81), ("one", "eins " * 10),
         ("  two\tspaces \u00a0 here ", "zwei  Leerzeichen  hier"), ("a | bar", "ein | Strich"))


def read(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n") for line in file]


def natural_pairs(data):
    pairs = []
    for english in sorted(glob.glob(f"{data}/*/train*.en.gz")):
        pairs += zip(read(english), read(english[:-5] + "de.gz"))
    return [pair for pair in dict.fromkeys(pairs) if pair[0] and pair[1]]


def made_pairs(g):
    letters = "abcdefghijklmnoprstuvwz"
    words = [["".join(g.choice(letters) for _ in range(g.randrange(2, 9))) for _ in range(400)]
             for _ in range(2)]
    return [tuple(" ".join(g.choice(words[side]) for _ in range(g.randrange(3, 20)))
                  for side in range(2)) for _ in range(500)]


def more_pairs(g, pairs, count):
    """`count` distinct pairs, the given ones first."""
    sample = g.sample(pairs, min(len(pairs), 20000))
    pools = [[word for pair in sample for word in pair[side].split()] for side in range(2)]
    split = [tuple(text.split() or ["x"] for text in pair) for pair in pairs]
    seen = set()
    for pair in pairs[:count]:
        seen.add(hash(pair))
        yield pair
    while len(seen) < count:
        made = []
        for pool, words in zip(pools, split[int(g.random() * len(split))]):
            words = words.copy()
            for _ in range(max(1, len(words) // 5)):
                words[int(g.random() * len(words))] = pool[int(g.random() * len(pool))]
            made.append(" ".join(words))
        if (key := hash(tuple(made))) not in seen:
            seen.add(key)
            yield tuple(made)


def add_bytes(tar, name, data):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def sgm(lines, kind, language):
    escape = lambda s: s.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    tag = "srcset" if kind == "src" else "refset"
    out = [f'<{tag} setid="newstest" srclang="any" trglang="{language}">']
    for at in range(0, len(lines), 10):
        out.append(f'<doc sysid="{kind}" docid="paper.{at}" genre="news" origlang="en">\n<p>')
        out += [f'<seg id="{i + 1}">{escape(line)}</seg>' for i, line in enumerate(lines[at:at + 10])]
        out.append("</p>\n</doc>")
    return ("\n".join(out) + f"\n</{tag}>\n").encode()


def write_tests(out, pairs):
    for place, names in (("wmt13/test.tgz", ("newstest2013-src.en.sgm", "newstest2013-src.de.sgm")),
                         ("wmt14/test-filtered.tgz", ("newstest2014-deen-src.en.sgm",
                                                      "newstest2014-deen-ref.de.sgm"))):
        part = pairs[place.startswith("wmt14")]
        with tarfile.open(out / place, "w:gz", compresslevel=1) as tar:
            add_bytes(tar, "test/newstest-of-others.cs.sgm", b"<seg id=1>x</seg>\n")
            for side, name in enumerate(names):
                lines = [pair[side] for pair in part]
                add_bytes(tar, "test/" + name, sgm(lines, ("src", "ref")[side], ("en", "de")[side]))


def write_training(out, pairs, count):
    files = [open(out / "text" / f"train.{language}", "w+b") for language in ("en", "de")]
    ends = []
    for number, pair in enumerate(pairs, 1):
        for file, text in zip(files, pair):
            file.write(text.encode() + b"\n")
        if number in {int(count * share) for _, _, share in ARCHIVES}:
            ends.append([file.tell() for file in files])
    begins = [[0, 0]] + ends
    for (place, stem, _), begin, end in zip(ARCHIVES, begins, ends):
        with tarfile.open(out / place, "w:gz", compresslevel=1) as tar:
            add_bytes(tar, "README", b"laid out as WMT's\n")
            for side, language in ((1, "de"), (0, "en")):
                entry = tarfile.TarInfo(f"{stem}.{language}")
                entry.size = end[side] - begin[side]
                files[side].flush()
                files[side].seek(begin[side])
                tar.addfile(entry, files[side])
            add_bytes(tar, stem.replace("de-en", "cs-en") + ".cs", b"jedna\n" * 1000)
    for file in files:
        file.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, required=True)
    parser.add_argument("--data")
    parser.add_argument("--test-lines", type=int, default=100)
    options = parser.parse_args()
    g = random.Random(7)
    for place in [place for place, _, _ in ARCHIVES] + ["wmt14/x", "text/x"]:
        (options.out / place).parent.mkdir(parents=True, exist_ok=True)
    pairs = natural_pairs(options.data) if options.data else made_pairs(g)
    natural = more_pairs(g, pairs, options.pairs - options.pairs // 100)

    def with_noise():
        last = None
        for number in range(options.pairs):
            if number % 100 != 99 or last is None:
                last = next(natural)
                yield last
            else:
                yield NOISE[number // 100 % len(NOISE)] if number % 200 == 99 else last

    write_training(options.out, with_noise(), options.pairs)
    tests = [pairs[:options.test_lines], pairs[-options.test_lines:]]
    if options.data:
        tests = [list(zip(*(read(f"{options.data}/wmt-newstest/newstest{year}.{language}.gz")
                            [:options.test_lines] for language in ("en", "de"))))
                 for year in (2013, 2014)]
    write_tests(options.out, tests)
    with open(options.out / "SHA256SUMS", "w", encoding="utf-8") as sums:
        for path in sorted(options.out.glob("**/*.tgz")):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            sums.write(f"{digest}  {path.relative_to(options.out)}\n")


if __name__ == "__main__":
    main()
