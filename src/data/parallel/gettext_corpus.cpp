#include "data/parallel/gettext_corpus.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "data/parallel/gettext_text.h"
#include "formats/mo_file.h"

namespace lockstep {

namespace {

std::vector<MessagePair> pairs_of(const MoEntry& entry) {
  std::vector<MessagePair> out;
  out.push_back({entry.id, entry.translations.front()});
  if (!entry.id_plural.empty() && entry.translations.size() > 1) {
    out.push_back({entry.id_plural, entry.translations[1]});
  }
  return out;
}

}  // namespace

std::vector<fs::path> find_catalogues(const fs::path& folder, const std::string& language) {
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, error);
  if (error) throw DataError("{}: cannot be read: {}", folder.string(), error.message());
  std::vector<fs::path> all;
  std::vector<fs::path> chosen;
  for (const fs::directory_entry& entry : entries) {
    if (entry.path().extension() != ".mo" || !entry.is_regular_file()) continue;
    all.push_back(entry.path());
    fs::path messages = entry.path().parent_path();
    bool right = messages.filename() == "LC_MESSAGES" &&
                 messages.parent_path().filename() == fs::path(language);
    if (right) chosen.push_back(entry.path());
  }
  if (all.empty()) {
    throw DataError("{}: no gettext catalogue (*.mo) in it or below it", folder.string());
  }
  if (chosen.empty()) chosen = std::move(all);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

ParallelText read_catalogues(const std::vector<fs::path>& catalogues, const CleaningRules& rules) {
  ParallelText out;
  for (const fs::path& path : catalogues) add_catalogue(read_mo_file(path), {rules}, out);
  return out;
}

void add_catalogue(const MoFile& catalogue, const CatalogueRules& rules, ParallelText& out) {
  const bool accelerators = uses_accelerators(catalogue);
  const bool ampersands = rules.all_marks && uses_ampersands(catalogue);
  for (const MoEntry& entry : catalogue.entries) {
    for (MessagePair& pair : pairs_of(entry)) {
      ++out.lines;
      std::optional<std::string> reason;
      if (rules.all_marks && names_translators(pair.source)) reason = "names of translators";
      if (ampersands && !drop_ampersands(pair)) reason = "unclear accelerator";
      if (!reason) reason = clean_messages(pair, accelerators);
      if (!reason) reason = reason_to_drop({pair.source, pair.target}, rules.rules);
      if (reason) {
        ++out.dropped[*reason];
      } else {
        out.pairs.add(pair.source, pair.target);
      }
    }
  }
}

}  // namespace lockstep
