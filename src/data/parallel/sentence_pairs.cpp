#include "data/parallel/sentence_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace lockstep {

namespace {

constexpr std::size_t kPairBytes = 1 << 20;
constexpr std::size_t kMaxLineBytes = 1u << 31;

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

void SentencePairs::add(std::string_view source, std::string_view target) {
  std::size_t bytes = source.size() + target.size();
  if (bytes > kMaxLineBytes) {
    throw DataError("a sentence pair of {} bytes is too long; one line holds one sentence", bytes);
  }
  if (bytes > block_left_) {
    std::size_t size = std::max(bytes, kPairBytes);
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    block_next_ = blocks_.back().get();
    block_left_ = size;
  }
  if (!source.empty()) std::memcpy(block_next_, source.data(), source.size());
  if (!target.empty()) std::memcpy(block_next_ + source.size(), target.data(), target.size());
  records_.push_back(
      {block_next_, static_cast<uint32_t>(source.size()), static_cast<uint32_t>(target.size())});
  block_next_ += bytes;
  block_left_ -= bytes;
}

PairView SentencePairs::operator[](int64_t i) const {
  const Record& r = records_[static_cast<std::size_t>(i)];
  return {{r.text, r.source_bytes}, {r.text + r.source_bytes, r.target_bytes}};
}

int64_t count_words(std::string_view text) {
  int64_t words = 0;
  bool inside = false;
  for (char c : text) {
    bool space = is_ascii_space(c);
    words += !space && !inside;
    inside = !space;
  }
  return words;
}

std::optional<std::string> reason_to_drop(PairView pair, const CleaningRules& rules) {
  int64_t source = count_words(pair.source);
  int64_t target = count_words(pair.target);
  auto [shorter, longer] = std::minmax(source, target);
  if (shorter == 0) return "empty line";
  if (shorter < rules.min_words) return fmt::format("fewer than {} words", rules.min_words);
  if (longer > rules.max_words) return fmt::format("more than {} words", rules.max_words);
  if (static_cast<double>(longer) > rules.max_ratio * static_cast<double>(shorter)) {
    return fmt::format("one side over {:g} times the other", rules.max_ratio);
  }
  return std::nullopt;
}

}  // namespace lockstep
