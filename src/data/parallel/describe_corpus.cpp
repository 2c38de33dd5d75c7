#include "data/parallel/describe_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::size_t kSourcesShown = 12;

// Returns a table of the kinds of sources, and of the largest ones.
std::string describe_sources(std::vector<SourceRecord> sources) {
  struct Kind {
    int64_t packages = 0, files = 0, read = 0, kept = 0;
  };
  std::map<std::string, Kind> kinds;
  for (const SourceRecord& source : sources) {
    Kind& kind = kinds[source.kind];
    ++kind.packages;
    kind.files += source.files;
    kind.read += source.pairs_read;
    kind.kept += source.pairs_kept;
  }
  std::string out = fmt::format("\n{:<24} {:>8} {:>8} {:>10} {:>10}\n", "source", "packages",
                                "files", "read", "kept");
  for (const auto& [name, kind] : kinds) {
    out += fmt::format("{:<24} {:>8} {:>8} {:>10} {:>10}\n", name, with_commas(kind.packages),
                       with_commas(kind.files), with_commas(kind.read), with_commas(kind.kept));
  }
  std::stable_sort(sources.begin(), sources.end(),
                   [](const auto& a, const auto& b) { return a.pairs_kept > b.pairs_kept; });
  sources.resize(std::min(sources.size(), kSourcesShown));
  out += "\nof them, the largest\n";
  for (const SourceRecord& source : sources) {
    out += fmt::format("{:<33} {:>8} {:>10} {:>10}  {}\n", source.name, with_commas(source.files),
                       with_commas(source.pairs_read), with_commas(source.pairs_kept), source.kind);
  }
  return out;
}

std::string megabytes(int64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6);
}

}  // namespace

std::string describe_corpus(const Manifest& m) {
  std::string out;
  int64_t dropped = 0;
  for (const auto& [reason, count] : m.dropped) dropped += count;
  out += fmt::format("pairs read     {:>12}\n", with_commas(m.pairs_read));
  for (const auto& [reason, count] : m.dropped) {
    out += fmt::format("  dropped      {:>12}  {}\n", with_commas(count), reason);
  }
  out += fmt::format("pairs kept     {:>12}\n", with_commas(m.pairs_read - dropped));
  out += fmt::format("vocabulary     {:>12}  {}-{} subwords\n", with_commas(m.vocab_size),
                     m.source_language, m.target_language);
  out += fmt::format("\n{:<6} {:>10} {:>12} {:>12} {:>12} {:>12} {:>8}\n", "split", "pairs",
                     "source words", "target words", "src tokens", "tgt tokens", "MB");
  for (const SplitRecord& split : m.splits) {
    out += fmt::format("{:<6} {:>10} {:>12} {:>12} {:>12} {:>12} {:>8}\n", split.name,
                       with_commas(split.pairs), with_commas(split.source_words),
                       with_commas(split.target_words), with_commas(split.source_tokens),
                       with_commas(split.target_tokens), megabytes(split.text_bytes));
  }
  if (!m.sources.empty()) out += describe_sources(m.sources);
  for (const SplitRecord& split : m.splits) {
    if (split.seen_in_train == 0) continue;
    out += fmt::format("note: {} pairs of {} have a side that is in train too\n",
                       with_commas(split.seen_in_train), split.name);
  }
  return out;
}

}  // namespace lockstep
