#include "data/tokenize/word_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/output_file.h"
#include "base/random.h"

namespace lockstep {

namespace {

constexpr std::size_t kTextBytes = 1 << 18;
constexpr std::size_t kFirstSlots = 1 << 10;

}  // namespace

WordTable::WordTable() : slots_(kFirstSlots) {}

uint64_t WordTable::hash(std::string_view word) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15ULL;
  uint64_t state = word.size() * kFactor;
  const char* p = word.data();
  std::size_t left = word.size();
  for (; left >= 8; left -= 8, p += 8) {
    uint64_t part;
    std::memcpy(&part, p, 8);
    state = (state ^ part) * kFactor;
    state ^= state >> 32;
  }
  uint64_t part = 0;
  for (std::size_t i = 0; i < left; ++i)
    part |= uint64_t(static_cast<unsigned char>(p[i])) << 8 * i;
  return mix64(state ^ part);
}

std::size_t WordTable::slot_of(std::string_view word, uint64_t hash) const {
  std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.number < 0) return i;
    if (slot.hash == hash && words_[static_cast<std::size_t>(slot.number)] == word) return i;
  }
}

int64_t WordTable::find(std::string_view word) const {
  return slots_[slot_of(word, hash(word))].number;
}

int64_t WordTable::add(std::string_view word) {
  uint64_t key = hash(word);
  std::size_t at = slot_of(word, key);
  if (slots_[at].number >= 0) return slots_[at].number;
  if (word.size() > block_left_) {
    std::size_t bytes = std::max(word.size(), kTextBytes);
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(bytes));
    block_next_ = blocks_.back().get();
    block_left_ = bytes;
  }
  if (!word.empty()) std::memcpy(block_next_, word.data(), word.size());
  slots_[at] = {key, size()};
  words_.emplace_back(block_next_, word.size());
  block_next_ += word.size();
  block_left_ -= word.size();
  if (3 * words_.size() > 2 * slots_.size()) grow();
  return size() - 1;
}

void WordTable::grow() {
  std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
  std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number < 0) continue;
    std::size_t i = slot.hash & mask;
    while (slots_[i].number >= 0) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

void WordCounts::add(std::string_view word, int64_t count) {
  auto number = static_cast<std::size_t>(words_.add(word));
  if (number == counts_.size()) counts_.push_back(0);
  counts_[number] += count;
  if (size() > most_words_) forget_rarest();
}

void WordCounts::add(const WordCounts& other) {
  for (int64_t i = 0; i < other.size(); ++i) {
    add(other.words_[i], other.counts_[static_cast<std::size_t>(i)]);
  }
}

std::vector<CountedWord> WordCounts::sorted() const {
  std::vector<CountedWord> out;
  out.reserve(counts_.size());
  for (int64_t i = 0; i < size(); ++i) {
    out.push_back({words_[i], counts_[static_cast<std::size_t>(i)]});
  }
  std::sort(out.begin(), out.end(), [](const CountedWord& a, const CountedWord& b) {
    return a.count != b.count ? a.count > b.count : a.word < b.word;
  });
  return out;
}

// Keeps half of the words, so that this is rarely necessary.
void WordCounts::forget_rarest() {
  std::vector<CountedWord> all = sorted();
  WordTable words;
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < most_words_ / 2; ++i) {
    words.add(all[static_cast<std::size_t>(i)].word);
    counts.push_back(all[static_cast<std::size_t>(i)].count);
  }
  words_ = std::move(words);
  counts_ = std::move(counts);
}

void write_word_counts(const fs::path& path, const WordCounts& counts) {
  OutputFile file(path);
  for (const CountedWord& word : counts.sorted()) {
    file.write(fmt::format_int(word.count).c_str());
    file.write(" ");
    file.write(word.word);
    file.write("\n");
  }
  file.finish();
}

WordCounts read_word_counts(const fs::path& path) {
  WordCounts out;
  MappedFile file(path);
  std::string_view rest(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  while (!rest.empty()) {
    std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) throw DataError("{}: cut off", path.string());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    int64_t count = 0;
    const char* stop = line.data() + line.size();
    auto [at, error] = std::from_chars(line.data(), stop, count);
    if (error != std::errc() || at == stop || *at != ' ' || count < 1) {
      throw DataError("{}: \"{}\": expected a count and a word", path.string(), line);
    }
    out.add({at + 1, static_cast<std::size_t>(stop - at - 1)}, count);
  }
  return out;
}

}  // namespace lockstep
