"""The vocabulary that SentencePiece learns from whole lines: `PIECE TAB SCORE` lines.

    learned_pieces.py VOCABULARY COVERAGE FILE...
"""
import sys
import tempfile

import sentencepiece

with tempfile.TemporaryDirectory() as folder:
    sentencepiece.SentencePieceTrainer.train(
        input=sys.argv[3:], model_prefix=f"{folder}/m", model_type="bpe",
        vocab_size=int(sys.argv[1]), character_coverage=float(sys.argv[2]), minloglevel=2,
        pad_id=0, eos_id=1, bos_id=2, unk_id=3)
    with open(f"{folder}/m.vocab", "rb") as vocabulary:
        sys.stdout.buffer.write(vocabulary.read())
