// Stores many sentence pairs in memory, at 16 bytes per pair plus their text, and decides which
// pairs are unusable.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// A view of one pair. It is valid as long as the SentencePairs it was taken from.
struct PairView {
  std::string_view source, target;
};

// Only grows. The text is in blocks that never move, so views stay valid while pairs are added.
class SentencePairs {
 public:
  void add(std::string_view source, std::string_view target);
  int64_t size() const { return static_cast<int64_t>(records_.size()); }
  PairView operator[](int64_t i) const;

 private:
  struct Record {
    const char* text;  // source, then target
    uint32_t source_bytes, target_bytes;
  };
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t block_left_ = 0;
  char* block_next_ = nullptr;
  std::vector<Record> records_;
};

// The usable lengths, in words between white space (counted like Moses' clean-corpus-n).
struct CleaningRules {
  int64_t min_words = 1;
  int64_t max_words = 80;
  double max_ratio = 9;  // of the longer to the shorter side
};

int64_t count_words(std::string_view text);

// Returns why the pair is not usable, or nothing. Neither text may have white space at its ends.
std::optional<std::string> reason_to_drop(PairView pair, const CleaningRules& rules);

}  // namespace lockstep
