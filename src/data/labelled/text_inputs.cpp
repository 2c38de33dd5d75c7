#include "data/labelled/text_inputs.h"

#include <algorithm>
#include <map>
#include <regex>

#include "base/error.h"
#include "data/fetch/archive_entries.h"
#include "data/labelled/text_source.h"

namespace lockstep {

namespace {

// Orders train, validation and test first.
int rank_of(const std::string& split) {
  return split == "train" ? 0 : split == "validation" ? 1 : split == "test" ? 2 : 3;
}

// Returns ".tsv.gz" for "train.tsv.gz", and an empty string for folders.
std::string endings_of(const fs::path& path) {
  const std::string name = path.filename().string();
  return fs::is_directory(path) ? "" : name.substr(std::min(name.find('.'), name.size()));
}

std::vector<TextSplitInput> splits_in(const fs::path& folder) {
  std::vector<fs::path> children;
  for (const auto& entry : fs::directory_iterator(folder)) children.push_back(entry.path());
  std::sort(children.begin(), children.end());
  std::map<std::string, std::vector<fs::path>> found;
  for (const fs::path& child : children) {
    const std::string split = text_split_of_name(child.filename().string());
    if (split.empty() || !(fs::is_directory(child) || is_text_table(child))) continue;
    std::vector<fs::path>& files = found[split];
    if (!files.empty() && endings_of(files[0]) != endings_of(child)) {
      DataError error("{}: both {} and {} are named after the split {}", folder.string(),
                      files[0].filename().string(), child.filename().string(), split);
      error.set_advice("--train FILE --validation FILE --test FILE");
      throw error;
    }
    files.push_back(child);
  }
  std::vector<TextSplitInput> out;
  for (auto& [name, files] : found) out.push_back({name, std::move(files)});
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return rank_of(a.name) < rank_of(b.name); });
  return out;
}

// Returns the only table of the folder, as the split train.
std::vector<TextSplitInput> only_table(const fs::path& folder) {
  std::vector<fs::path> tables;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (is_text_table(entry.path())) tables.push_back(entry.path());
  }
  if (tables.size() != 1) return {};
  return {{"train", tables}};
}

}  // namespace

std::string text_split_of_name(std::string_view file) {
  static const std::regex kShard("-[0-9]+-of-[0-9]+$");
  static const std::regex kFirst("(train|validation|valid|val|dev|test)(_.*)?");
  static const std::regex kLast(".*[-_](train|validation|valid|val|dev|test)");
  std::string name(file.substr(0, file.find('.')));
  name = std::regex_replace(name, kShard, "");
  std::smatch match;
  if (!std::regex_match(name, match, kFirst) && !std::regex_match(name, match, kLast)) return "";
  const std::string word = match[1];
  const std::string split = word == "train" || word == "test" ? word : "validation";
  return split + (match.size() > 2 ? match[2].str() : "");
}

std::vector<TextSplitInput> find_text_inputs(const fs::path& input) {
  if (!fs::exists(input)) throw DataError("{}: no such file or folder", input.string());
  if (!fs::is_directory(input)) {
    const std::string split = text_split_of_name(input.filename().string());
    return {{split.empty() ? "train" : split, {input}}};
  }
  std::vector<TextSplitInput> out = splits_in(input);
  if (!out.empty()) return out;
  fs::path from;
  for (const auto& entry : fs::directory_iterator(input)) {
    if (!entry.is_directory()) continue;
    std::vector<TextSplitInput> below = splits_in(entry.path());
    if (below.empty()) continue;
    if (!out.empty()) {
      throw DataError("{}: both {} and {} hold texts; name one of them", input.string(),
                      from.filename().string(), entry.path().filename().string());
    }
    out = std::move(below);
    from = entry.path();
  }
  if (out.empty()) out = only_table(input);
  if (out.empty()) {
    DataError error("{}: no texts found", input.string());
    error.set_advice(
        "expected train.csv, .tsv, .jsonl, .json or .parquet (and validation, test), or "
        "train/CLASS/*.txt; or name files: --train FILE");
    throw error;
  }
  return out;
}

TextInputs::TextInputs(const fs::path& input) : input_(input) {
  if (fs::is_directory(input) || !is_archive_name(input.filename().string())) {
    splits_ = find_text_inputs(input);
    return;
  }
  unpacked_.emplace();
  unpack_archive(input, unpacked_->path(), [](const fs::path& path) {
    return is_text_table(path) || is_text_name(path.filename().string());
  });
  try {
    splits_ = find_text_inputs(unpacked_->path());
  } catch (Error& error) {
    name_archive(error);
    throw;
  }
}

void TextInputs::name_archive(Error& error) const {
  if (unpacked_) error.add_context("reading what was unpacked of " + input_.string());
}

}  // namespace lockstep
