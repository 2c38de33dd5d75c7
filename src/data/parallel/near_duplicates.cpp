#include "data/parallel/near_duplicates.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

namespace lockstep {

namespace {

// Appends letters to a key, with one space for anything else between them.
class KeyBuilder {
 public:
  void letter(char32_t c) {
    if (gap_ && !key_.empty()) key_ += ' ';
    gap_ = false;
    append_utf8(c, key_);
  }
  void other() { gap_ = true; }
  std::string take() { return std::move(key_); }

 private:
  std::string key_;
  bool gap_ = false;
};

bool is_letter_or_mark(char32_t c) {
  auto code = static_cast<UChar32>(c);
  constexpr uint32_t kLettersAndMarks = U_GC_L_MASK | U_GC_M_MASK;
  return (U_MASK(u_charType(code)) & kLettersAndMarks) != 0;
}

std::string casefolded(std::string_view sentence) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer = icu::Normalizer2::getNFKCCasefoldInstance(status);
  std::string out;
  icu::StringByteSink<std::string> sink(&out);
  if (U_SUCCESS(status)) {
    icu::StringPiece piece(sentence.data(), static_cast<int32_t>(sentence.size()));
    normalizer->normalizeUTF8(0, piece, sink, nullptr, status);
  }
  if (U_FAILURE(status)) {
    throw MachineError("ICU cannot normalise text: {}; is its data file there?",
                       u_errorName(status));
  }
  return out;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

std::string comparison_key(std::string_view sentence) {
  KeyBuilder key;
  if (is_ascii(sentence)) {  // true for most English lines; same result without ICU
    for (char c : sentence) {
      char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      if (lower >= 'a' && lower <= 'z') {
        key.letter(static_cast<char32_t>(lower));
      } else {
        key.other();
      }
    }
  } else {
    for (char32_t c : to_code_points(casefolded(sentence))) {
      if (is_letter_or_mark(c)) {
        key.letter(c);
      } else {
        key.other();
      }
    }
  }
  std::string out = key.take();
  return out.empty() ? std::string(trim(sentence)) : out;
}

std::vector<uint32_t> trigrams(std::string_view key) {
  std::u32string text = U" " + to_code_points(key) + U" ";
  std::vector<uint32_t> out;
  for (std::size_t i = 0; i + 3 <= text.size(); ++i) {
    uint64_t packed = (static_cast<uint64_t>(text[i]) << 42) ^
                      (static_cast<uint64_t>(text[i + 1]) << 21) ^ text[i + 2];
    out.push_back(static_cast<uint32_t>(mix64(packed)));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

double jaccard(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  std::size_t shared = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) {
      ++shared;
      ++i;
      ++j;
    } else if (a[i] < b[j]) {
      ++i;
    } else {
      ++j;
    }
  }
  std::size_t all = a.size() + b.size() - shared;
  return all == 0 ? 1.0 : static_cast<double>(shared) / static_cast<double>(all);
}

NearCopyIndex::NearCopyIndex(double threshold, std::vector<uint32_t> frequencies)
    : threshold_(threshold), frequencies_(std::move(frequencies)) {
  frequencies_.resize(kBuckets);
}

std::vector<uint32_t> NearCopyIndex::prefix(const std::vector<uint32_t>& grams) const {
  // A set that is similar enough shares at least ceil(threshold * size) elements, so it shares at
  // least one of any size - that + 1 elements. Subtracting 1e-9 guards against 0.8 * 5 being
  // 4.000...1.
  auto size = static_cast<double>(grams.size());
  auto shared = static_cast<std::size_t>(std::ceil(threshold_ * size - 1e-9));
  std::size_t wanted = std::min(grams.size(), grams.size() - shared + 1);
  auto rank = [&](uint32_t gram) { return std::pair(frequencies_[bucket_of(gram)], gram); };
  std::vector<uint32_t> out = grams;
  std::partial_sort(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(wanted), out.end(),
                    [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });
  out.resize(wanted);
  return out;
}

void NearCopyIndex::add(std::vector<uint32_t> grams) {
  auto index = static_cast<int32_t>(sets_.size());
  for (uint32_t gram : prefix(grams)) having_[gram].push_back(index);
  sets_.push_back(std::move(grams));
}

bool NearCopyIndex::has_near_copy(const std::vector<uint32_t>& grams) const {
  auto size = static_cast<double>(grams.size());
  std::vector<int32_t> candidates;
  for (uint32_t gram : prefix(grams)) {
    auto found = having_.find(gram);
    if (found == having_.end()) continue;
    for (int32_t index : found->second) {
      auto other = static_cast<double>(sets_[static_cast<std::size_t>(index)].size());
      if (std::min(size, other) >= threshold_ * std::max(size, other) - 1e-9) {
        candidates.push_back(index);
      }
    }
  }
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  return std::any_of(candidates.begin(), candidates.end(), [&](int32_t index) {
    return is_near(grams, sets_[static_cast<std::size_t>(index)]);
  });
}

bool NearCopyIndex::is_near(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) const {
  // J = shared / (|a| + |b| - shared) >= t  means  missing <= (1 - t) / (1 + t) * (|a| + |b|),
  // where `missing` counts the elements that only one set has. Most candidates exceed that early.
  auto sizes = static_cast<double>(a.size() + b.size());
  auto allowed = static_cast<std::size_t>((1 - threshold_) / (1 + threshold_) * sizes + 1e-9);
  std::size_t missing = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) {
      ++i;
      ++j;
      continue;
    }
    if (++missing > allowed) return false;
    ++(a[i] < b[j] ? i : j);
  }
  return jaccard(a, b) >= threshold_;
}

DisjointSets::DisjointSets(int64_t size) : parent_(static_cast<std::size_t>(size)) {
  std::iota(parent_.begin(), parent_.end(), int64_t{0});
}

int64_t DisjointSets::find(int64_t i) {
  auto at = [&](int64_t k) -> int64_t& { return parent_[static_cast<std::size_t>(k)]; };
  while (at(i) != i) {
    at(i) = at(at(i));
    i = at(i);
  }
  return i;
}

void DisjointSets::unite(int64_t a, int64_t b) {
  a = find(a);
  b = find(b);
  // The smaller index represents the set, so the representative depends only on the set's members.
  parent_[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
}

}  // namespace lockstep
