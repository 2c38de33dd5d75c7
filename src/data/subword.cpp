#include "data/subword.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/ordered_parallel.h"

namespace lockstep {

namespace {

// Our source of sentences as the trainer wants it.
class SentenceAdapter : public sentencepiece::SentenceIterator {
 public:
  explicit SentenceAdapter(const SentenceSource& next) : next_(next) { Next(); }

  bool done() const override { return done_; }
  void Next() override {
    std::string_view sentence;
    done_ = !next_(sentence);
    if (!done_) value_ = sentence;
  }
  const std::string& value() const override { return value_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const SentenceSource& next_;
  std::string value_;
  bool done_ = false;
};

// The number after `words` in a message of SentencePiece.
std::optional<int64_t> number_after(std::string_view text, std::string_view words) {
  std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  text = trim(text.substr(at + words.size()));
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

[[noreturn]] void fail_for_training(const SubwordConfig& config, const std::string& message) {
  std::optional<int64_t> largest = number_after(message, "set it to a value <=");
  if (largest) {
    ConfigError error("a vocabulary of {} is larger than the text allows; at most {} here",
                      with_commas(config.vocab_size), with_commas(*largest));
    error.set_advice(fmt::format("--vocab {} or less, or more text", *largest));
    throw error;
  }
  if (message.find("smaller than required_chars") != std::string::npos) {
    ConfigError error("a vocabulary of {} is smaller than the alphabet of the text",
                      with_commas(config.vocab_size));
    error.set_cause(message);
    error.set_advice(
        "a larger --vocab, or --character-coverage 0.9995, which leaves rare "
        "characters out");
    throw error;
  }
  ConfigError error("SentencePiece cannot learn a vocabulary of {}",
                    with_commas(config.vocab_size));
  error.set_cause(message);
  throw error;
}

}  // namespace

std::string learn_subwords(const SubwordConfig& config, const SentenceSource& next) {
  SentenceAdapter adapter(next);
  if (adapter.done()) throw DataError("there is no sentence to learn subwords from");
  const std::unordered_map<std::string, std::string> options{
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(config.vocab_size)},
      {"character_coverage", fmt::format("{}", config.character_coverage)},
      {"pad_id", "0"},
      {"eos_id", "1"},
      {"bos_id", "2"},
      {"unk_id", "3"},
      {"input_sentence_size", std::to_string(config.max_sentences)},
      {"shuffle_input_sentence", "true"},
      {"num_threads", std::to_string(available_cores())},
      {"minloglevel", "3"},  // silent: what goes wrong comes back as a status
  };
  sentencepiece::SetRandomGeneratorSeed(static_cast<unsigned>(config.seed));
  std::string model;
  sentencepiece::util::Status status =
      sentencepiece::SentencePieceTrainer::Train(options, &adapter, &model);
  if (!status.ok()) fail_for_training(config, status.ToString());
  return model;
}

Subword::Subword() : processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {}
Subword::~Subword() = default;
Subword::Subword(Subword&&) noexcept = default;
Subword& Subword::operator=(Subword&&) noexcept = default;

Subword Subword::load(const fs::path& path) { return from_bytes(read_file(path), path.string()); }

Subword Subword::from_bytes(std::string_view model, const std::string& name) {
  Subword out;
  sentencepiece::util::Status status = out.processor_->LoadFromSerializedProto(model);
  if (model.empty() || !status.ok()) {
    DataError error("{}: not a SentencePiece model", name);
    error.set_cause(status.ok() ? "the file is empty" : status.ToString());
    throw error;
  }
  out.sha256_ = sha256_hex(std::as_bytes(std::span(model.data(), model.size())));
  return out;
}

std::vector<int32_t> Subword::encode(std::string_view line) const {
  std::vector<int> ids;
  sentencepiece::util::Status status = processor_->Encode(line, &ids);
  if (!status.ok()) throw DataError("a line cannot be encoded: {}", status.ToString());
  return ids;
}

std::vector<std::string> Subword::encode_to_pieces(std::string_view line) const {
  std::vector<std::string> pieces;
  sentencepiece::util::Status status = processor_->Encode(line, &pieces);
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
