// The edits of TER: which sequences of words to shift, and what then remains to edit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

// Scratch space for many pairs of texts, one after the other. For one thread. Words are numbers.
//
// Greedy, as Tercom: of all shifts of a sequence that stands elsewhere in the reference the one is
// made that saves most edits, until none saves any or 1,000 were weighed. Edit distances are
// computed 25 words around the diagonal. Limits and ties are those of sacreBLEU 2.6.0.
class ShiftSearch {
 public:
  // Insertions, deletions, substitutions and shifts that make the reference of the hypothesis.
  int64_t edits(std::span<const uint32_t> hypothesis, std::span<const uint32_t> reference);

 private:
  struct Shift {
    int saved = 0;  // edits
    int start = 0, length = 0, target = 0;
  };

  void fill_row(int row, uint32_t word, const int32_t* above, int32_t* out) const;
  void fill_table();  // of words_
  void align();
  std::optional<Shift> best_shift();
  void weigh(Shift shift, int in_reference, std::optional<Shift>& best);
  int distance_after(const Shift& shift, int good_enough);
  void make(const Shift& shift, std::vector<uint32_t>& words) const;
  int32_t* row(int index) { return table_.data() + index * (static_cast<int64_t>(columns_)); }

  std::vector<uint32_t> words_, reference_;
  int rows_ = 0, columns_ = 0;  // words and 1
  double ratio_ = 1;            // words of the reference for one of the hypothesis
  int beam_ = 0;                // cells on either side of the diagonal
  int weighed_ = 0;             // shifts, over all rounds

  std::vector<int32_t> table_;  // [row, column] edits that make so many words of so many words
  std::vector<int> aligned_;    // by word of the reference: the word of the hypothesis, -1: before
  std::vector<int> word_errors_, reference_errors_;  // [i]: among the first i words
  std::vector<uint32_t> shifted_;
  std::vector<int32_t> above_, below_;
};

}  // namespace lockstep
