"""What Moses' clean-corpus-n.perl keeps of two files, pairs sorted: `EN TAB DE` lines.

    moses_clean.py SOURCE TARGET

Minimum 1, maximum 80 words, ratio 9; the first lines have no bar, so bars go.
"""
import re
import sys

SPACE = re.compile("[\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")


def clean(line):
    return SPACE.sub(" ", line.rstrip("\n").replace("|", "")).strip(" ")


def main():
    out = []
    with open(sys.argv[1], encoding="utf-8", newline="\n") as source, \
            open(sys.argv[2], encoding="utf-8", newline="\n") as target:
        for pair in zip(map(clean, source), map(clean, target)):
            words = [len(text.split(" ")) for text in pair]
            if all(pair) and max(words) <= 80 and max(words) <= 9 * min(words):
                out.append("\t".join(pair))
    sys.stdout.buffer.write("".join(line + "\n" for line in sorted(out)).encode())


if __name__ == "__main__":
    main()
