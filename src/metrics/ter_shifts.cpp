#include "metrics/ter_shifts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

namespace lockstep {

namespace {

constexpr int kLongestShift = 10, kFarthestShift = 50;  // in words; Tercom's limits
constexpr int kMostWeighed = 1000;
constexpr int kBeam = 25;
constexpr int32_t kFar = 1 << 28;  // outside the beam: one edit more makes no difference

}  // namespace

void ShiftSearch::fill_row(int row, uint32_t word, const int32_t* above, int32_t* out) const {
  auto diagonal = static_cast<int>(std::floor(row * ratio_));
  int begin = std::max(0, diagonal - beam_);
  int end = row + 1 == rows_ ? columns_ : std::min(columns_, diagonal + beam_);
  std::fill(out, out + begin, kFar);
  std::fill(out + end, out + columns_, kFar);
  if (begin == 0) {
    out[0] = above[0] + 1;
    begin = 1;
  }
  for (int j = begin; j < end; ++j) {
    int32_t replaced = above[j - 1] + (word == reference_[static_cast<std::size_t>(j) - 1] ? 0 : 1);
    int32_t edited = std::min(above[j], out[j - 1]) + 1;
    out[j] = std::min({replaced, edited, kFar});
  }
}

void ShiftSearch::fill_table() {
  for (int i = 1; i < rows_; ++i) {
    fill_row(i, words_[static_cast<std::size_t>(i) - 1], row(i - 1), row(i));
  }
}

// Traces the best edits back through the table. On ties it prefers to keep or replace, then to
// delete, then to insert.
void ShiftSearch::align() {
  aligned_.assign(reference_.size(), -1);
  word_errors_.assign(words_.size() + 1, 0);
  reference_errors_.assign(reference_.size() + 1, 0);
  int i = rows_ - 1, j = columns_ - 1;
  while (i > 0 || j > 0) {
    bool both = false;
    if (i > 0 && j > 0) {
      int differ = words_[i - 1] == reference_[j - 1] ? 0 : 1;
      both = row(i - 1)[j - 1] + differ == row(i)[j];
      if (both) word_errors_[i] = reference_errors_[j] = differ;
    }
    bool remove = !both && i > 0 && (j == 0 || row(i - 1)[j] + 1 == row(i)[j]);
    if (remove) {
      word_errors_[i--] = 1;
      continue;
    }
    if (!both) reference_errors_[j] = 1;
    aligned_[--j] = i - 1;
    if (both) --i;
  }
  for (std::size_t k = 1; k < word_errors_.size(); ++k) word_errors_[k] += word_errors_[k - 1];
  for (std::size_t k = 1; k < reference_errors_.size(); ++k) {
    reference_errors_[k] += reference_errors_[k - 1];
  }
}

void ShiftSearch::make(const Shift& shift, std::vector<uint32_t>& words) const {
  auto first = words.begin() + shift.start, last = first + shift.length;
  if (shift.target < shift.start) {
    std::rotate(words.begin() + shift.target, first, last);
  } else if (shift.target > shift.start + shift.length) {
    std::rotate(first, last, words.begin() + shift.target);
  } else {  // within itself: moves on by as many words
    int end = std::min(shift.length + shift.target, static_cast<int>(words.size()));
    std::rotate(first, last, words.begin() + end);
  }
}

// Returns the distance, or any larger number than `good_enough` if the distance exceeds it.
int ShiftSearch::distance_after(const Shift& shift, int good_enough) {
  shifted_ = words_;
  make(shift, shifted_);
  int same = std::min(shift.start, shift.target);  // words before the first moved one
  const int32_t* above = row(same);
  above_.resize(static_cast<std::size_t>(columns_));
  below_.resize(static_cast<std::size_t>(columns_));
  for (int i = same + 1; i < rows_; ++i) {
    fill_row(i, shifted_[static_cast<std::size_t>(i) - 1], above, below_.data());
    // From a cell at least as many edits follow as the remaining texts differ in length.
    int longer = columns_ - rows_ + i;
    int least = kFar;
    for (int j = 0; j < columns_; ++j) least = std::min(least, below_[j] + std::abs(longer - j));
    if (least > good_enough) return least;
    above_.swap(below_);
    above = above_.data();
  }
  return above[columns_ - 1];
}

// Evaluates all shifts of this sequence to or beside its position in the reference.
void ShiftSearch::weigh(Shift shift, int in_reference, std::optional<Shift>& best) {
  int end = shift.start + shift.length;
  if (word_errors_[end] == word_errors_[shift.start]) return;
  if (reference_errors_[in_reference + shift.length] == reference_errors_[in_reference]) return;
  if (shift.start <= aligned_[in_reference] && aligned_[in_reference] < end) return;
  int distance = row(rows_ - 1)[columns_ - 1];
  int last_target = -1;
  for (int offset = -1; offset < shift.length; ++offset) {
    int before = in_reference + offset;
    shift.target = before == -1 ? 0 : aligned_[before] + 1;
    if (shift.target == last_target) continue;
    last_target = shift.target;
    ++weighed_;
    // More saved edits win, then the longer sequence, then the earlier start, then the earlier
    // target.
    auto rank = [](const Shift& s) { return std::tuple(s.length, -s.start, -s.target); };
    int needed = !best ? 1 : best->saved + (rank(shift) > rank(*best) ? 0 : 1);
    shift.saved = distance - distance_after(shift, distance - needed);
    if (shift.saved >= needed) best = shift;
  }
}

std::optional<ShiftSearch::Shift> ShiftSearch::best_shift() {
  std::optional<Shift> best;
  auto hypothesis = static_cast<int>(words_.size()),
       reference = static_cast<int>(reference_.size());
  for (int start = 0; start < hypothesis; ++start) {
    int last = std::min(reference - 1, start + kFarthestShift);
    for (int other = std::max(0, start - kFarthestShift); other <= last; ++other) {
      int most = std::min({kLongestShift, hypothesis - start, reference - other});
      for (int length = 1; length <= most; ++length) {
        if (words_[start + length - 1] != reference_[other + length - 1]) break;
        weigh({.start = start, .length = length}, other, best);
        if (weighed_ >= kMostWeighed) return std::nullopt;
      }
    }
  }
  return best;
}

int64_t ShiftSearch::edits(std::span<const uint32_t> hypothesis,
                           std::span<const uint32_t> reference) {
  if (reference.empty()) return static_cast<int64_t>(hypothesis.size());
  words_.assign(hypothesis.begin(), hypothesis.end());
  reference_.assign(reference.begin(), reference.end());
  rows_ = static_cast<int>(words_.size()) + 1;
  columns_ = static_cast<int>(reference_.size()) + 1;
  ratio_ = words_.empty() ? 1 : static_cast<double>(columns_ - 1) / (rows_ - 1);
  // For extremely different lengths, the beams of neighbouring rows would not overlap.
  beam_ = kBeam < ratio_ / 2 ? static_cast<int>(std::ceil(ratio_ / 2 + kBeam)) : kBeam;
  table_.resize(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(columns_));
  for (int j = 0; j < columns_; ++j) table_[j] = j;
  weighed_ = 0;
  fill_table();
  int64_t shifts = 0;
  for (; row(rows_ - 1)[columns_ - 1] > 0; ++shifts) {
    align();
    std::optional<Shift> shift = best_shift();
    if (!shift) break;
    make(*shift, words_);
    fill_table();
  }
  return shifts + row(rows_ - 1)[columns_ - 1];
}

}  // namespace lockstep
