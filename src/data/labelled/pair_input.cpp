#include "data/labelled/pair_input.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "data/fetch/archive_entries.h"
#include "data/labelled/language_names.h"
#include "data/labelled/text_source.h"

namespace lockstep {

namespace {

using Names = std::vector<std::string>;

bool is_tabbed_text(const fs::path& file) {
  return (file.extension() == ".gz" ? file.stem() : file).extension() == ".txt";
}

// What of an archive is taken: a table, or two texts and their languages.
struct ArchivedPairs {
  std::string table;
  std::string source, target;
  LanguagePair languages;
};

[[noreturn]] void fail(const fs::path& archive, const std::string& what, const Names& entries) {
  constexpr std::size_t kShown = 8;
  Names shown(entries.begin(), entries.begin() + std::min(entries.size(), kShown));
  if (entries.size() > kShown) shown.push_back(fmt::format("{} more", entries.size() - kShown));
  DataError error("{}: {} (it has {})", archive.string(), what, join(shown, ", "));
  error.set_advice("unpack it and name the file, or the two");
  throw error;
}

// Texts by what stands before their languages: "Tatoeba.de-en" has "de" and "en".
using Stems = std::map<std::string, std::map<std::string, std::string>>;

Stems stems_of(const Names& entries, const LanguagePair& wanted) {
  Stems out;
  for (const std::string& entry : entries) {
    const std::optional<std::string> language = language_of(entry);
    if (!language) continue;
    const bool any = wanted.source.empty() || wanted.target.empty();
    if (!any && !equals_ignoring_case(*language, wanted.source) &&
        !equals_ignoring_case(*language, wanted.target)) {
      continue;
    }
    const std::size_t ending = language->size() + (entry.ends_with(".gz") ? 4 : 1);
    out[entry.substr(0, entry.size() - ending)][*language] = entry;
  }
  std::erase_if(out, [](const auto& stem) { return stem.second.size() != 2; });
  return out;
}

ArchivedPairs choose_entries(const fs::path& archive, const LanguagePair& wanted) {
  Names entries, tables, texts;
  ArchiveEntries content(archive);
  while (const std::optional<std::string> entry = content.next()) {
    entries.push_back(*entry);
    if (is_text_table(*entry)) tables.push_back(*entry);
    const std::string name = fs::path(*entry).filename().string();
    // Notes of those who made the archive are not taken for a text with tabs.
    const bool note = name.starts_with("_") || lower_ascii(name).starts_with("readme") ||
                      lower_ascii(name).starts_with("licen");
    if (is_tabbed_text(*entry) && !note) texts.push_back(*entry);
  }
  const Stems stems = stems_of(entries, wanted);
  const Names& single = tables.empty() ? texts : tables;
  if (stems.size() > 1) fail(archive, "more than one pair of texts", entries);
  if (stems.empty() && single.size() > 1) fail(archive, "more than one table", entries);
  if (stems.empty() && single.empty()) {
    fail(archive,
         wanted.source.empty()
             ? "no pair of texts and no table"
             : fmt::format("no texts of {} and {}, and no table", wanted.source, wanted.target),
         entries);
  }
  if (stems.empty()) return {.table = single[0], .source = "", .target = "", .languages = {}};
  const auto& [first, second] =
      std::pair(*stems.begin()->second.begin(), *std::next(stems.begin()->second.begin()));
  const std::string source = !wanted.source.empty() ? wanted.source : "en";
  const bool swapped = equals_ignoring_case(second.first, source);
  const auto& [from, to] = swapped ? std::pair(second, first) : std::pair(first, second);
  return {
      .table = "", .source = from.second, .target = to.second, .languages = {from.first, to.first}};
}

// Writes an entry to a file whose name is `to` and the entry's own.
fs::path unpack(const fs::path& archive, const std::string& entry, fs::path to) {
  to += "-" + fs::path(entry).filename().string();
  ArchiveEntries content(archive);
  content.find(entry);
  content.write(to);
  return to;
}

std::string language_or(const std::string& wanted, const std::string& column,
                        const char* otherwise) {
  if (!wanted.empty()) return wanted;
  const std::string named = language_of_column(column);
  return is_language_name(named) ? lower_ascii(named) : otherwise;
}

}  // namespace

bool may_hold_pairs(const fs::path& file) {
  return is_text_table(file) || is_tabbed_text(file) || is_archive_name(file.string());
}

TakenPairs take_pairs(const fs::path& file, const PairOptions& options, const fs::path& folder,
                      const std::string& name) {
  fs::path table = file;
  std::string of_archive;
  if (is_archive_name(file.string())) {
    const ArchivedPairs found = choose_entries(file, options.languages);
    if (found.table.empty()) {
      return {{unpack(file, found.source, folder / name), unpack(file, found.target, folder / name),
               TakenFrom{file, found.source + " and " + found.target}},
              found.languages};
    }
    table = unpack(file, found.table, folder / name);
    of_archive = found.table + ", ";
  }
  ParallelFiles files{folder / (name + ".source"), folder / (name + ".target"), std::nullopt};
  const TextColumns columns = write_table_pairs({table}, options, files).columns;
  files.taken =
      TakenFrom{file, fmt::format("{}columns {} and {}", of_archive, columns.text, columns.pair)};
  return {files,
          {language_or(options.languages.source, columns.text, "source"),
           language_or(options.languages.target, columns.pair, "target")}};
}

}  // namespace lockstep
