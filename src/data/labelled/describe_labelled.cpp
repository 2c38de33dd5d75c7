// Describes the texts that `lockstep prepare labelled` has prepared.
#include <algorithm>

#include "base/error.h"
#include "base/table.h"
#include "base/text.h"
#include "data/labelled/prepare_labelled.h"

namespace lockstep {

namespace {

std::string share(int64_t part, int64_t whole) {
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) /
                                     static_cast<double>(std::max<int64_t>(1, whole)));
}

std::string describe_classes(const TextManifest& manifest) {
  constexpr std::size_t kShown = 30;
  std::vector<std::vector<std::string>> rows{{"class", "label"}};
  std::string right = "r ";
  for (const TextSplitRecord& split : manifest.splits) {
    rows[0].push_back(split.name);
    rows[0].emplace_back();
    right += "rr";
  }
  for (std::size_t c = 0; c < std::min(kShown, manifest.classes.size()); ++c) {
    std::vector<std::string> row{std::to_string(c), manifest.classes[c]};
    for (const TextSplitRecord& split : manifest.splits) {
      const bool known = c < split.class_counts.size();
      row.push_back(known ? with_commas(split.class_counts[c]) : "?");
      row.push_back(known ? share(split.class_counts[c], split.examples) : "");
    }
    rows.push_back(row);
  }
  std::string out = "\n" + format_table(rows, right);
  if (manifest.classes.size() > kShown) {
    out += fmt::format("... {} classes in all, in manifest.json\n", manifest.classes.size());
  }
  return out;
}

std::string describe_values(const TextManifest& manifest) {
  std::vector<std::vector<std::string>> rows{{"value", "min", "mean", "max"}};
  for (const TextSplitRecord& split : manifest.splits) {
    std::vector<std::string> row{split.name};
    for (const char* name : {"min", "mean", "max"}) {
      auto found = split.values.find(name);
      row.push_back(found == split.values.end() ? "?" : fmt::format("{:.4g}", found->second));
    }
    rows.push_back(row);
  }
  return "\n" + format_table(rows, " rrr");
}

}  // namespace

std::string describe_labelled(const TextManifest& manifest) {
  std::string out;
  const TextColumns& columns = manifest.columns;
  if (!columns.text.empty()) {
    out += fmt::format("columns: text {}{}, label {}\n", columns.text,
                       columns.pair.empty() ? "" : ", pair " + columns.pair,
                       columns.label.empty() ? "none" : columns.label);
  }
  const TokenizerIdentity& tokenizer = manifest.tokenizer;
  out += fmt::format("vocabulary: {} pieces, {}; at most {} ids\n\n",
                     with_commas(tokenizer.vocab_size),
                     tokenizer.lowercase ? "lower-cased" : "cased", manifest.max_length);
  std::vector<std::vector<std::string>> rows{
      {"split", "texts", "ids", "mean", "median", "90 %", "99 %", "longest", "cut", "", "skipped"}};
  for (const TextSplitRecord& split : manifest.splits) {
    std::vector<std::string> row{split.name, with_commas(split.examples),
                                 with_commas(split.tokens)};
    row.push_back(fmt::format("{:.1f}", split.lengths.at("mean")));
    for (const char* name : {"p50", "p90", "p99", "max"}) {
      row.push_back(with_commas(static_cast<int64_t>(split.lengths.at(name))));
    }
    row.push_back(with_commas(split.truncated));
    row.push_back(share(split.truncated, split.examples));
    row.push_back(with_commas(split.skipped));
    rows.push_back(row);
  }
  out += format_table(rows, " rrrrrrrrrr");
  if (manifest.label_kind == LabelKind::kClass) out += describe_classes(manifest);
  if (manifest.label_kind == LabelKind::kValue) out += describe_values(manifest);
  return out;
}

}  // namespace lockstep
