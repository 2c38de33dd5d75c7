#include "data/labelled/language_names.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"

namespace lockstep {

namespace {

// What is often found beside corpora and is no language.
const std::set<std::string> kNoLanguages = {"txt", "tsv", "csv", "md",  "bz2", "xz",
                                            "zip", "tar", "sh",  "py",  "bpe", "xml",
                                            "sgm", "ids", "tgz", "bin", "url"};

}  // namespace

bool is_language_name(std::string_view word) {
  const std::string name = lower_ascii(std::string(word));
  const std::string code = name.substr(0, name.find_first_of("-_"));  // en_US, pt-br, zh-Hans
  const bool letters =
      std::all_of(code.begin(), code.end(), [](unsigned char c) { return std::islower(c) != 0; });
  const bool usual = (code.size() == 2 || code.size() == 3) && !kNoLanguages.contains(code);
  const bool named = code == "source" || code == "target" || code == "src" || code == "tgt";
  return letters && (usual || named);
}

std::optional<std::string> language_of(const fs::path& file) {
  const fs::path plain = file.extension() == ".gz" ? file.stem() : file.filename();
  const std::string ending = lower_ascii(plain.extension().string());
  if (ending.empty() || !is_language_name(ending.substr(1))) return std::nullopt;
  return ending.substr(1);
}

std::string language_of_column(const std::string& column) {
  return column.substr(column.rfind('.') + 1);  // all of it without a dot
}

}  // namespace lockstep
