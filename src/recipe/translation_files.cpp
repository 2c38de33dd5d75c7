#include "recipe/translation_files.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "data/labelled/language_names.h"
#include "data/labelled/text_inputs.h"

namespace lockstep {

namespace {

struct Stem {
  std::map<std::string, fs::path> by_language;
};

std::string without_gz(const fs::path& file) {
  const std::string name = file.filename().string();
  return file.extension() == ".gz" ? name.substr(0, name.size() - 3) : name;
}

std::map<std::string, Stem> stems_in(const fs::path& folder) {
  std::map<std::string, Stem> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::optional<std::string> language = language_of(entry.path());
    if (!entry.is_regular_file() || !language) continue;
    const std::string name = without_gz(entry.path());
    Stem& stem = out[name.substr(0, name.size() - language->size() - 1)];
    auto [at, added] = stem.by_language.emplace(*language, entry.path());
    if (!added) {
      throw DataError("{}: both {} and {}", folder.string(), at->second.filename().string(),
                      entry.path().filename().string());
    }
  }
  std::erase_if(out, [](const auto& item) { return item.second.by_language.size() < 2; });
  return out;
}

[[noreturn]] void fail_without_pairs(const fs::path& folder) {
  DataError error("{}: no aligned text found", folder.string());
  error.set_advice(
      "expected train.en and train.de (any two languages, plain or .gz) with dev.* and test.*, or "
      "name the two files: lockstep new translation SOURCE TARGET");
  throw error;
}

std::pair<std::string, std::string> direction(const std::map<std::string, Stem>& stems,
                                              const fs::path& folder, const std::string& source) {
  std::set<std::string> languages;
  for (const auto& [name, stem] : stems) {
    for (const auto& [language, file] : stem.by_language) languages.insert(language);
  }
  const std::vector<std::string> names(languages.begin(), languages.end());
  if (names.size() != 2) {
    DataError error("{}: {} languages ({}); expected two", folder.string(), names.size(),
                    join(names, ", "));
    error.set_advice("name the two files: lockstep new translation SOURCE TARGET");
    throw error;
  }
  if (!source.empty() && !languages.contains(source)) {
    throw ConfigError("--source-language {}: not in {}{} ({})", source, folder.string(),
                      did_you_mean(source, names), join(names, ", "));
  }
  const bool second = source.empty() ? names[1] == "en" : names[1] == source;
  return second ? std::pair(names[1], names[0]) : std::pair(names[0], names[1]);
}

}  // namespace

TranslationFiles find_translation_files(const fs::path& folder, const std::string& source) {
  const std::map<std::string, Stem> stems = stems_in(folder);
  if (stems.empty()) fail_without_pairs(folder);
  TranslationFiles out;
  std::tie(out.source_language, out.target_language) = direction(stems, folder, source);
  std::optional<std::string> train;
  for (const auto& [name, stem] : stems) {
    const ParallelFiles files{stem.by_language.at(out.source_language),
                              stem.by_language.at(out.target_language)};
    const std::string split = stems.size() == 1 ? "train" : text_split_of_name(name);
    if (split == "train" && train) {
      DataError error("{}: both {}.* and {}.* could be what to train on", folder.string(), *train,
                      name);
      error.set_advice("name the two files: lockstep new translation SOURCE TARGET");
      throw error;
    }
    if (split == "train") {
      train = name;
      out.train = files;
    } else if (split == "validation" && !out.dev) {
      out.dev = files;
    } else if (split.starts_with("test") && !out.test) {
      out.test = files;
    } else {
      out.passed_over.push_back(name);
    }
  }
  if (!train) {
    DataError error("{}: no pair of files is named train ({})", folder.string(),
                    join(out.passed_over, ", "));
    error.set_advice("name the two files: lockstep new translation SOURCE TARGET");
    throw error;
  }
  return out;
}

TranslationFiles name_translation_files(const ParallelFiles& train) {
  TranslationFiles out;
  out.train = train;
  out.source_language = language_of(train.source).value_or("source");
  out.target_language = language_of(train.target).value_or("target");
  if (out.source_language == out.target_language) {  // e.g. train-src.en and train-tgt.en
    out.source_language = "source";
    out.target_language = "target";
  }
  return out;
}

}  // namespace lockstep
