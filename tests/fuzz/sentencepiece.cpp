// A SentencePiece model: our checks before and after the library's own.
#include "data/tokenize/subword.h"
#include "fuzz.h"

FUZZ(bytes) {
  const auto model = lockstep::Subword::from_bytes(bytes);
  lockstep::use(model.encode("a man rides a horse"));
  lockstep::use(model.decode(std::vector<int32_t>{0, model.vocab_size() - 1}));
  lockstep::use(model.vocabulary_text());
}
