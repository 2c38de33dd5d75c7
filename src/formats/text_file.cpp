#include "formats/text_file.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "base/error.h"
#include "formats/token_ids.h"

namespace lockstep {

namespace {

constexpr std::string_view kLabelsMagic = "LSLABELS";
constexpr uint32_t kLabelsVersion = 1;

// The first 80 bytes of the file, docs/formats.md#text-file.
struct LabelsHeader {
  char magic[8];
  uint32_t version;
  uint32_t id_bytes;
  uint64_t examples;
  uint64_t tokens;
  uint32_t vocab_size;
  uint32_t label_kind;
  uint32_t classes;
  uint32_t reserved;
  unsigned char vocab_sha256[32];
};
static_assert(sizeof(LabelsHeader) == 80);
static_assert(sizeof(TextRecord) == 16);

}  // namespace

TextFileWriter::TextFileWriter(const fs::path& path, const TextFileInfo& info)
    : file_(path), info_(info) {
  LabelsHeader empty{};
  sha256_to_bytes(info_.vocab_sha256, empty.vocab_sha256);
  file_.write(&empty, sizeof empty);  // placeholder: finish() writes the real header
}

void TextFileWriter::add(const TextExample& example) {
  write_token_ids(file_, example.ids, info_.vocab_size, narrow_);
  tokens_ += example.ids.size();
  TextRecord record{.end = tokens_, .second_begin = static_cast<uint32_t>(example.second_begin)};
  if (info_.label_kind == LabelKind::kClass) record.label = static_cast<uint32_t>(example.label);
  if (info_.label_kind == LabelKind::kValue) record.label = std::bit_cast<uint32_t>(example.value);
  records_.push_back(record);
}

void TextFileWriter::relabel(std::span<const int32_t> numbers, int32_t classes) {
  info_.classes = classes;
  for (TextRecord& record : records_) record.label = static_cast<uint32_t>(numbers[record.label]);
}

void TextFileWriter::drop_labels() {
  info_.label_kind = LabelKind::kNone;
  info_.classes = 0;
  for (TextRecord& record : records_) record.label = 0;
}

void TextFileWriter::finish() {
  if (info_.label_kind == LabelKind::kClass) {
    for (const TextRecord& record : records_) {
      if (record.label >= static_cast<uint32_t>(info_.classes)) {
        throw std::invalid_argument("a label is outside the classes");
      }
    }
  }
  const uint64_t id_bytes = tokens_ * token_id_bytes(info_.vocab_size);
  static constexpr char kZeros[8] = {};
  file_.write(kZeros, padded_to_8(id_bytes) - id_bytes);
  file_.write(records_.data(), records_.size() * sizeof(TextRecord));
  LabelsHeader header{};
  std::memcpy(header.magic, kLabelsMagic.data(), kLabelsMagic.size());
  header.version = kLabelsVersion;
  header.id_bytes = token_id_bytes(info_.vocab_size);
  header.examples = static_cast<uint64_t>(examples());
  header.tokens = tokens_;
  header.vocab_size = static_cast<uint32_t>(info_.vocab_size);
  header.label_kind = static_cast<uint32_t>(info_.label_kind);
  header.classes = static_cast<uint32_t>(info_.classes);
  sha256_to_bytes(info_.vocab_sha256, header.vocab_sha256);
  file_.rewrite(0, &header, sizeof header);
  file_.finish();
}

TextFile::TextFile(const fs::path& path) : path_(path), file_(path) {
  read_header();
  check_records();
}

void TextFile::read_header() {
  std::span<const std::byte> bytes = file_.bytes();
  LabelsHeader header{};
  if (bytes.size() < sizeof header) {
    throw DataError("{}: has {} bytes, a file of texts starts with {}", path_.string(),
                    bytes.size(), sizeof header);
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::string_view(header.magic, 8) != kLabelsMagic) {
    throw DataError("{}: not a file of texts: it does not start with \"{}\"", path_.string(),
                    kLabelsMagic);
  }
  if (header.version != kLabelsVersion) {
    throw DataError("{}: format version {}, this program reads version {}; prepare it again",
                    path_.string(), header.version, kLabelsVersion);
  }
  const bool known = header.label_kind <= static_cast<uint32_t>(LabelKind::kValue);
  constexpr uint32_t kMost = std::numeric_limits<int32_t>::max();
  if (header.vocab_size == 0 || header.vocab_size > kMost || header.classes > kMost || !known ||
      header.id_bytes != token_id_bytes(static_cast<int32_t>(header.vocab_size))) {
    throw DataError("{}: damaged: vocabulary of {}, {} bytes an id, labels of kind {}",
                    path_.string(), header.vocab_size, header.id_bytes, header.label_kind);
  }
  // The bounds are checked first, so that the sum below cannot overflow.
  const bool possible = header.examples <= bytes.size() && header.tokens <= bytes.size();
  const uint64_t ids = padded_to_8(header.tokens * header.id_bytes);
  const uint64_t expected = sizeof header + ids + header.examples * sizeof(TextRecord);
  if (!possible || bytes.size() != expected) {
    throw DataError("{}: damaged: has {} bytes, its header ({} examples, {} tokens) asks for {}",
                    path_.string(), bytes.size(), header.examples, header.tokens, expected);
  }
  info_ = {.vocab_size = static_cast<int32_t>(header.vocab_size),
           .vocab_sha256 = sha256_of_bytes(header.vocab_sha256),
           .label_kind = static_cast<LabelKind>(header.label_kind),
           .classes = static_cast<int32_t>(header.classes)};
  id_bytes_ = header.id_bytes;
  examples_ = static_cast<int64_t>(header.examples);
  tokens_ = static_cast<int64_t>(header.tokens);
  ids_ = bytes.data() + sizeof header;
  records_ = ids_ + ids;
}

void TextFile::check_records() const {
  uint64_t begin = 0;
  for (int64_t i = 0; i < examples_; ++i) {
    const TextRecord one = record(i);
    const uint64_t length = one.end - begin;
    if (one.end < begin || one.end > static_cast<uint64_t>(tokens_) || length < 2 ||
        length > std::numeric_limits<int32_t>::max() || one.second_begin < 2 ||
        one.second_begin > length) {
      throw DataError(
          "{}: damaged: example {} reaches from token {} to {} of {}, its second text {}",
          path_.string(), i, begin, one.end, tokens_, one.second_begin);
    }
    if (info_.label_kind == LabelKind::kClass &&
        one.label >= static_cast<uint32_t>(info_.classes)) {
      throw DataError("{}: damaged: example {} has the label {} of {} classes", path_.string(), i,
                      one.label, info_.classes);
    }
    begin = one.end;
  }
  if (begin != static_cast<uint64_t>(tokens_)) {
    throw DataError("{}: damaged: its examples have {} tokens, its header says {}", path_.string(),
                    begin, tokens_);
  }
}

TextRecord TextFile::record(int64_t i) const {
  TextRecord out;
  std::memcpy(&out, records_ + static_cast<std::size_t>(i) * sizeof out, sizeof out);
  return out;
}

uint64_t TextFile::begin(int64_t i) const { return i == 0 ? 0 : record(i - 1).end; }

int32_t TextFile::length(int64_t i) const { return static_cast<int32_t>(record(i).end - begin(i)); }

int32_t TextFile::second_begin(int64_t i) const {
  return static_cast<int32_t>(record(i).second_begin);
}

int64_t TextFile::label(int64_t i) const {
  return info_.label_kind == LabelKind::kClass ? static_cast<int64_t>(record(i).label) : -1;
}

float TextFile::value(int64_t i) const {
  return info_.label_kind == LabelKind::kValue ? std::bit_cast<float>(record(i).label) : NAN;
}

void TextFile::read(int64_t i, int64_t* ids) const {
  const std::byte* from = ids_ + begin(i) * id_bytes_;
  for (int32_t left = length(i); left > 0; --left, from += id_bytes_) {
    const uint32_t id = read_token_id(from, id_bytes_);
    if (id >= static_cast<uint32_t>(info_.vocab_size)) {
      throw DataError("{}: damaged: example {} has token {}, the vocabulary ends at {}",
                      path_.string(), i, id, info_.vocab_size - 1);
    }
    *ids++ = id;
  }
}

}  // namespace lockstep
