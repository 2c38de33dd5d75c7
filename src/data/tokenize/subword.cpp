#include "data/tokenize/subword.h"

#include <sentencepiece_processor.h>

#include <utility>

#include "base/error.h"

namespace lockstep {

namespace {

// Returns the text as SentencePiece takes it: in a class of its own before 0.1.97, in std's since.
absl::string_view for_sentencepiece(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

Subword::Subword() : processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {}
Subword::~Subword() = default;
Subword::Subword(Subword&&) noexcept = default;
Subword& Subword::operator=(Subword&&) noexcept = default;

Subword Subword::load(const fs::path& path) { return from_bytes(read_file(path), path.string()); }

Subword Subword::from_bytes(std::string_view model, const std::string& name) {
  Subword out;
  std::string problem = "the file is empty";
  try {
    const sentencepiece::util::Status status =
        out.processor_->LoadFromSerializedProto(for_sentencepiece(model));
    if (!model.empty()) problem = status.ok() ? "" : status.ToString();
  } catch (const std::exception& error) {  // of the trie that it builds of the pieces
    problem = error.what();
  }
  if (!problem.empty()) {
    DataError error("{}: not a SentencePiece model", name);
    error.set_cause(problem);
    throw error;
  }
  out.model_ = model;
  return out;
}

std::vector<int32_t> Subword::encode(std::string_view line) const {
  std::vector<int> ids;
  sentencepiece::util::Status status = processor_->Encode(for_sentencepiece(line), &ids);
  if (!status.ok()) throw DataError("a line cannot be encoded: {}", status.ToString());
  return ids;
}

std::vector<std::string> Subword::encode_to_pieces(std::string_view line) const {
  std::vector<std::string> pieces;
  sentencepiece::util::Status status = processor_->Encode(for_sentencepiece(line), &pieces);
  if (!status.ok()) throw DataError("a line cannot be encoded: {}", status.ToString());
  return pieces;
}

std::string Subword::decode(std::span<const int32_t> ids) const {
  std::string text;
  sentencepiece::util::Status status =
      processor_->Decode(std::vector<int>(ids.begin(), ids.end()), &text);
  if (!status.ok()) throw DataError("ids cannot be decoded: {}", status.ToString());
  return text;
}

std::string Subword::decode_pieces(const std::vector<std::string>& pieces) const {
  std::string text;
  sentencepiece::util::Status status = processor_->Decode(pieces, &text);
  if (!status.ok()) throw DataError("pieces cannot be decoded: {}", status.ToString());
  return text;
}

int32_t Subword::vocab_size() const { return processor_->GetPieceSize(); }
const std::string& Subword::piece(int32_t id) const { return processor_->IdToPiece(id); }
float Subword::score(int32_t id) const { return processor_->GetScore(id); }
int32_t Subword::pad_id() const { return processor_->pad_id(); }
int32_t Subword::bos_id() const { return processor_->bos_id(); }
int32_t Subword::eos_id() const { return processor_->eos_id(); }
int32_t Subword::unk_id() const { return processor_->unk_id(); }

std::string Subword::serialized() const { return processor_->serialized_model_proto(); }

std::string Subword::vocabulary_text() const {
  std::string out;
  for (int32_t id = 0; id < vocab_size(); ++id) {
    out += fmt::format("{}\t{:g}\n", piece(id), score(id));
  }
  return out;
}

}  // namespace lockstep
