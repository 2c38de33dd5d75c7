// Counts the edits of TER: searches which word sequences to shift and counts the remaining edits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

// Scratch space that is reused for many pairs of texts. Not thread-safe. Words are given as
// numbers.
//
// The search is greedy, like Tercom: among the shifts of a sequence that occurs elsewhere in the
// reference it makes the one that saves most edits, until no shift saves any or 1,000 were
// evaluated. Edit distances are computed within 25 words of the diagonal. Limits and ties are those
// of sacreBLEU 2.6.0.
class ShiftSearch {
 public:
  // Returns the insertions, deletions, substitutions and shifts that turn the hypothesis into the
  // reference.
  int64_t edits(std::span<const uint32_t> hypothesis, std::span<const uint32_t> reference);

 private:
  struct Shift {
    int saved = 0;  // edits
    int start = 0, length = 0, target = 0;
  };

  void fill_row(int row, uint32_t word, const int32_t* above, int32_t* out) const;
  void fill_table();  // for words_
  void align();
  std::optional<Shift> best_shift();
  void weigh(Shift shift, int in_reference, std::optional<Shift>& best);
  int distance_after(const Shift& shift, int good_enough);
  void make(const Shift& shift, std::vector<uint32_t>& words) const;
  int32_t* row(int index) { return table_.data() + index * (static_cast<int64_t>(columns_)); }

  std::vector<uint32_t> words_, reference_;
  int rows_ = 0, columns_ = 0;  // number of words plus 1
  double ratio_ = 1;            // reference words per hypothesis word
  int beam_ = 0;                // cells on either side of the diagonal
  int weighed_ = 0;             // shifts evaluated in all rounds

  std::vector<int32_t> table_;  // [i, j]: edits that turn i words into j reference words
  std::vector<int> aligned_;    // for each reference word its hypothesis word; -1: before all
  std::vector<int> word_errors_, reference_errors_;  // [i]: errors in the first i words
  std::vector<uint32_t> shifted_;
  std::vector<int32_t> above_, below_;
};

}  // namespace lockstep
