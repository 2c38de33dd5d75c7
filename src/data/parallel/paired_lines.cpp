#include "data/parallel/paired_lines.h"

#include <memory>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/fetch/archive_entries.h"

namespace lockstep {

namespace {

LineReader::Source lines_of(const fs::path& archive, const std::string& entry, bool check_rest) {
  // The reading thread opens the archive, because reaching the entry means reading everything
  // before it.
  auto reader = std::make_shared<std::unique_ptr<ArchiveEntries>>();
  return [=](char* to, std::size_t most) {
    if (!*reader) {
      *reader = std::make_unique<ArchiveEntries>(archive);
      (*reader)->find(entry);
    }
    std::size_t n = (*reader)->read(to, most);
    if (n == 0 && check_rest) (*reader)->check_rest();
    return n;
  };
}

// Returns the number of lines in `last` and in all blocks after it.
int64_t count_rest(LineReader& blocks, std::optional<NumberedLines> last) {
  int64_t lines = 0;
  for (; last; last = blocks.next()) lines += last->size();
  return lines;
}

}  // namespace

PairedLines::PairedLines(const fs::path& archive, const std::string& source_entry,
                         const std::string& target_entry, bool check_rest)
    : archive_(archive),
      source_entry_(source_entry),
      target_entry_(target_entry),
      sources_(lines_of(archive, source_entry, check_rest)),
      targets_(lines_of(archive, target_entry, false)) {}

std::optional<PairedLines::Block> PairedLines::next() {
  std::optional<NumberedLines> source = sources_.next();
  std::optional<NumberedLines> target = targets_.next();
  if ((source ? source->size() : 0) != (target ? target->size() : 0)) {
    int64_t more_sources = count_rest(sources_, std::move(source));
    fail(read_ + more_sources, read_ + count_rest(targets_, std::move(target)));
  }
  if (!source) return std::nullopt;
  read_ += source->size();
  return Block{std::move(*source), std::move(*target)};
}

void PairedLines::fail(int64_t source, int64_t target) const {
  throw DataError("{}: {} has {} lines, {} has {}; expected as many in both", archive_.string(),
                  source_entry_, with_commas(source), target_entry_, with_commas(target));
}

}  // namespace lockstep
