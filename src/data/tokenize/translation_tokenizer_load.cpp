// Finds the vocabulary of a folder and compares vocabularies. Apart from translation_tokenizer.cpp,
// which lockstep-translate has too: that program reads no JSON and makes no digests.
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "data/tokenize/published_vocabulary.h"
#include "data/tokenize/translation_tokenizer.h"

namespace lockstep {
namespace {

// Whether the folder was exported by lockstep, with a vocabulary that lockstep learned.
bool is_own_export(const fs::path& folder) {
  if (!fs::exists(folder / kExportedSubword) || !fs::exists(folder / "config.json")) return false;
  const auto json = nlohmann::json::parse(read_file(folder / "config.json"), nullptr, false);
  return json.is_object() && json.contains("lockstep");
}

std::string sha256_of(const std::string& text) {
  return sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
}

std::string identity_of(const PublishedVocabulary& v) {
  std::string text = fmt::format("{} {} {}\n", static_cast<int>(v.kind), sha256_of(v.source_model),
                                 sha256_of(v.target_model));
  for (const PieceTable* table : {&v.source, &v.target()}) {
    for (const std::string& piece : table->pieces) text += piece + '\n';
    text += '\n';
  }
  return sha256_of(text);
}

}  // namespace

bool TranslationTokenizer::is_published(const fs::path& folder) {
  return !fs::exists(folder / "subword.model") && !is_own_export(folder) &&
         has_published_vocabulary(folder);
}

TranslationTokenizer TranslationTokenizer::load(const fs::path& folder) {
  if (fs::exists(folder / "subword.model")) {
    return TranslationTokenizer(Subword::load(folder / "subword.model"));
  }
  if (is_own_export(folder)) return TranslationTokenizer(Subword::load(folder / kExportedSubword));
  if (has_published_vocabulary(folder)) {
    return TranslationTokenizer(read_published_vocabulary(folder));
  }
  DataError error("{}: has no vocabulary of a translation model", folder.string());
  error.set_cause(
      "expected subword.model (lockstep), source.spm, target.spm and vocab.json (Marian), or "
      "sentencepiece.bpe.model (M2M100, NLLB)");
  throw error;
}

std::string TranslationTokenizer::identity() const {
  return is_own() ? source_->sha256() : identity_of(published_);
}

}  // namespace lockstep
