#include "formats/token_file.h"

#include <cstring>
#include <limits>

#include "base/error.h"
#include "formats/token_ids.h"

namespace lockstep {

namespace {

constexpr std::string_view kTokensMagic = "LSTOKENS";
constexpr uint32_t kTokensVersion = 1;

// The first 80 bytes of the file, docs/formats.md#token-file.
struct TokensHeader {
  char magic[8];
  uint32_t version;
  uint32_t id_bytes;
  uint64_t pairs;
  uint64_t source_tokens;
  uint64_t target_tokens;
  uint32_t vocab_size;
  uint32_t reserved;
  unsigned char subword_sha256[32];
};
static_assert(sizeof(TokensHeader) == 80);

}  // namespace

TokenFileWriter::TokenFileWriter(const fs::path& path, const TokenFileInfo& info)
    : file_(path), info_(info) {
  TokensHeader empty{};
  sha256_to_bytes(info_.subword_sha256, empty.subword_sha256);
  file_.write(&empty, sizeof empty);  // placeholder: finish() writes the real header
}

void TokenFileWriter::append(std::span<const int32_t> ids) {
  write_token_ids(file_, ids, info_.vocab_size, narrow_);
  offsets_.push_back(offsets_.back() + ids.size());
}

void TokenFileWriter::add(std::span<const int32_t> source, std::span<const int32_t> target) {
  append(source);
  append(target);
  source_tokens_ += static_cast<int64_t>(source.size());
  target_tokens_ += static_cast<int64_t>(target.size());
}

void TokenFileWriter::finish() {
  uint64_t id_bytes = offsets_.back() * token_id_bytes(info_.vocab_size);
  static constexpr char kZeros[8] = {};
  file_.write(kZeros, padded_to_8(id_bytes) - id_bytes);
  file_.write(offsets_.data(), offsets_.size() * sizeof(uint64_t));
  TokensHeader header{};
  std::memcpy(header.magic, kTokensMagic.data(), kTokensMagic.size());
  header.version = kTokensVersion;
  header.id_bytes = token_id_bytes(info_.vocab_size);
  header.pairs = static_cast<uint64_t>(pairs());
  header.source_tokens = static_cast<uint64_t>(source_tokens_);
  header.target_tokens = static_cast<uint64_t>(target_tokens_);
  header.vocab_size = static_cast<uint32_t>(info_.vocab_size);
  sha256_to_bytes(info_.subword_sha256, header.subword_sha256);
  file_.rewrite(0, &header, sizeof header);
  file_.finish();
}

TokenFile::TokenFile(const fs::path& path) : path_(path), file_(path) {
  read_header();
  check_offsets();
}

void TokenFile::read_header() {
  std::span<const std::byte> bytes = file_.bytes();
  TokensHeader header{};
  if (bytes.size() < sizeof header) {
    throw DataError("{}: has {} bytes, a token file starts with {}", path_.string(), bytes.size(),
                    sizeof header);
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::string_view(header.magic, 8) != kTokensMagic) {
    throw DataError("{}: not a token file: it does not start with \"{}\"", path_.string(),
                    kTokensMagic);
  }
  if (header.version != kTokensVersion) {
    throw DataError("{}: token file version {}, this program reads version {}", path_.string(),
                    header.version, kTokensVersion);
  }
  if (header.vocab_size == 0 || header.vocab_size > std::numeric_limits<int32_t>::max()) {
    throw DataError("{}: offset 40: vocabulary size {} is not possible", path_.string(),
                    header.vocab_size);
  }
  vocab_size_ = static_cast<int32_t>(header.vocab_size);
  id_bytes_ = header.id_bytes;
  if (id_bytes_ != token_id_bytes(vocab_size_)) {
    throw DataError("{}: offset 12: {} bytes an id, expected {} for a vocabulary of {}",
                    path_.string(), id_bytes_, token_id_bytes(vocab_size_), vocab_size_);
  }
  // The bounds are checked first, so that the sum below cannot overflow.
  uint64_t most = bytes.size();
  bool possible =
      header.pairs <= most && header.source_tokens <= most && header.target_tokens <= most;
  uint64_t ids = padded_to_8((header.source_tokens + header.target_tokens) * id_bytes_);
  uint64_t expected = sizeof header + ids + (2 * header.pairs + 1) * sizeof(uint64_t);
  if (!possible || bytes.size() != expected) {
    throw DataError("{}: damaged: has {} bytes, its header ({} pairs, {} + {} tokens) asks for {}",
                    path_.string(), bytes.size(), header.pairs, header.source_tokens,
                    header.target_tokens, expected);
  }
  pairs_ = static_cast<int64_t>(header.pairs);
  source_tokens_ = static_cast<int64_t>(header.source_tokens);
  target_tokens_ = static_cast<int64_t>(header.target_tokens);
  subword_sha256_ = sha256_of_bytes(header.subword_sha256);
  ids_ = bytes.data() + sizeof header;
  offsets_ = ids_ + ids;
}

uint64_t TokenFile::offset(int64_t i) const {
  uint64_t value;
  std::memcpy(&value, offsets_ + i * sizeof value, sizeof value);
  return value;
}

void TokenFile::check_offsets() const {
  auto total = static_cast<uint64_t>(source_tokens_ + target_tokens_);
  uint64_t source = 0;
  if (offset(0) != 0) throw DataError("{}: damaged: offset 0 is {}", path_.string(), offset(0));
  for (int64_t i = 0; i < 2 * pairs_; ++i) {
    uint64_t begin = offset(i);
    uint64_t end = offset(i + 1);
    if (end < begin || end > total || end - begin > std::numeric_limits<int32_t>::max()) {
      throw DataError("{}: damaged: pair {} reaches from token {} to {} of {}", path_.string(),
                      i / 2, begin, end, total);
    }
    if (i % 2 == 0) source += end - begin;
  }
  if (offset(2 * pairs_) != total || source != static_cast<uint64_t>(source_tokens_)) {
    throw DataError("{}: damaged: its offsets name {} source tokens of {}, its header {} of {}",
                    path_.string(), source, offset(2 * pairs_), source_tokens_, total);
  }
}

std::vector<int32_t> TokenFile::sentence(int64_t i) const {
  std::vector<int32_t> out(static_cast<std::size_t>(length(i)));
  const std::byte* from = ids_ + offset(i) * id_bytes_;
  for (int32_t& id : out) {
    const uint32_t value = read_token_id(from, id_bytes_);
    from += id_bytes_;
    if (value >= static_cast<uint32_t>(vocab_size_)) {
      throw DataError("{}: damaged: pair {} has token {}, the vocabulary ends at {}",
                      path_.string(), i / 2, value, vocab_size_ - 1);
    }
    id = static_cast<int32_t>(value);
  }
  return out;
}

}  // namespace lockstep
