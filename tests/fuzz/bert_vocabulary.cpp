// The vocabulary of a BERT: vocab.txt, tokenizer.json.
#include "data/tokenize/bert_tokenizer.h"

#include <cstdlib>
#include <fstream>

#include "fuzz.h"

namespace {

// The loader knows the format by the file's name.
lockstep::fs::path named(std::string_view bytes, const char* name) {
  static const lockstep::fs::path folder = [] {
    char text[] = "/dev/shm/lockstep-fuzz-XXXXXX";
    return lockstep::fs::path(::mkdtemp(text));
  }();
  const lockstep::fs::path path = folder / name;
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

}  // namespace

FUZZ(bytes) {
  const bool json = !bytes.empty() && bytes.front() == '{';
  const lockstep::BertTokenizer tokenizer =
      lockstep::BertTokenizer::load(named(bytes, json ? "tokenizer.json" : "vocab.txt"));
  lockstep::WordPieceInput out;
  lockstep::use(tokenizer.encode("Ünïted [MASK] states 東京", out, 64));
}
