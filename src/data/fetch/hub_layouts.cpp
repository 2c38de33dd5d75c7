#include "data/fetch/hub_layouts.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>

#include "base/text.h"
#include "data/fetch/archive_entries.h"

namespace lockstep {

namespace {

using Files = std::vector<std::string>;
using Splits = std::vector<HubSplit>;

std::string file_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string ending_of(const std::string& path) {
  std::string file = lower_ascii(file_of(path));
  if (file.ends_with(".gz")) file.resize(file.size() - 3);
  const std::size_t dot = file.rfind('.');
  return dot == std::string::npos ? "" : file.substr(dot);
}

// `datasets` passes over these too.
bool is_no_data(const std::string& path) {
  static const std::set<std::string> names = {"README.md",         "config.json",
                                              "dataset_info.json", "dataset_infos.json",
                                              "dummy_data.zip",    "dataset_dict.json"};
  for (const std::string& part : split(path, '/')) {
    if (part.starts_with(".") || part.starts_with("__")) return true;
  }
  return names.contains(file_of(path));
}

// Translates a pattern of data_files: "*" and "?" within a folder, "**" over folders, "[...]".
std::regex regex_of(const std::string& pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (pattern.compare(i, 3, "**/") == 0) {
      out += "(.*/)?";
      i += 2;
    } else if (pattern.compare(i, 2, "**") == 0) {
      out += ".*";
      ++i;
    } else if (c == '*') {
      out += "[^/]*";
    } else if (c == '?') {
      out += "[^/]";
    } else if (c == '[' && pattern.find(']', i) != std::string::npos) {
      const std::size_t end = pattern.find(']', i);
      out += pattern.substr(i, end - i + 1);
      i = end;
    } else {
      if (std::string_view("\\^$.|()+{}[]").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return std::regex(out);
}

// The words by which names tell their split, as in datasets.data_files.
struct SplitWord {
  const char* word;
  const char* split;
};
constexpr SplitWord kSplitWords[] = {
    {"train", "train"},      {"training", "train"}, {"validation", "validation"},
    {"valid", "validation"}, {"dev", "validation"}, {"val", "validation"},
    {"test", "test"},        {"testing", "test"},   {"eval", "test"},
    {"evaluation", "test"}};

// Returns the split whose word stands alone in the name, or an empty text.
std::string split_in(const std::string& name) {
  const std::string lower = lower_ascii(name);
  for (const auto& [word, split] : kSplitWords) {
    const std::size_t length = std::string_view(word).size();
    for (std::size_t at = lower.find(word); at != std::string::npos;
         at = lower.find(word, at + 1)) {
      auto apart = [&](std::size_t where) {
        return std::isalpha(static_cast<unsigned char>(lower[where])) == 0;
      };
      const std::size_t end = at + length;
      if ((at == 0 || apart(at - 1)) && (end == lower.size() || apart(end))) return split;
    }
  }
  return "";
}

// Returns the splits that `split_name` finds in the files; files without one are left out.
template <typename Name>
Splits grouped(const Files& files, const Name& split_name) {
  Splits out;
  for (const std::string& file : files) {
    const std::string name = split_name(file);
    if (!name.empty()) add_hub_files(name, {file}, out);
  }
  return out;
}

}  // namespace

bool is_hub_metadata(const std::string& path) {
  const std::string file = file_of(path);
  return file == "metadata.csv" || file == "metadata.jsonl";
}

std::string hub_file_kind(const std::string& path, HubContent content) {
  const std::string ending = ending_of(path);
  if (is_no_data(path)) return "";
  if (content == HubContent::kTables) {
    const bool table = ending == ".csv" || ending == ".tsv" || ending == ".json" ||
                       ending == ".jsonl" || ending == ".parquet";
    return table ? ending : "";
  }
  if (ending == ".parquet") return file_of(path) == "metadata.parquet" ? "" : ending;
  if (is_archive_name(file_of(path))) return ".tar";
  const bool picture = ending == ".jpg" || ending == ".jpeg" || ending == ".png";
  return picture || is_hub_metadata(path) ? ".jpg" : "";
}

Files matching_files(const Files& files, const std::string& pattern) {
  Files out;
  const std::string plain = pattern.starts_with("./") ? pattern.substr(2) : pattern;
  const std::regex wanted = regex_of(plain);
  std::copy_if(files.begin(), files.end(), std::back_inserter(out),
               [&](const std::string& file) { return std::regex_match(file, wanted); });
  return out;
}

void add_hub_files(const std::string& name, const Files& files, Splits& out) {
  auto split = std::find_if(out.begin(), out.end(),
                            [&](const HubSplit& known) { return known.name == name; });
  if (split == out.end()) split = out.insert(out.end(), HubSplit{name, {}});
  for (const std::string& file : files) {
    if (std::find(split->files.begin(), split->files.end(), file) == split->files.end()) {
      split->files.push_back(file);
    }
  }
}

Splits splits_by_name(const Files& files) {
  static const std::regex sharded("(?:.*/)?data/([^/]+?)-[0-9]{5}-of-[0-9]{5}[^/]*");
  Splits out = grouped(files, [](const std::string& file) {
    std::smatch match;
    return std::regex_match(file, match, sharded) ? match[1].str() : std::string();
  });
  if (!out.empty()) return out;
  out = grouped(files, [](const std::string& file) {
    Files parts = split(file, '/');
    parts.pop_back();
    for (const std::string& part : parts) {
      if (const std::string name = split_in(part); !name.empty()) return name;
    }
    return std::string();
  });
  if (out.empty()) {
    out = grouped(files, [](const std::string& file) { return split_in(file_of(file)); });
  }
  if (out.empty() && !files.empty()) out.push_back({"train", files});
  return out;
}

std::map<std::string, Splits> converted_layout(const Files& files) {
  static const std::regex layout("([^/]+)/(?:partial-)?([^/]+)/[0-9]{4,}\\.parquet");
  std::map<std::string, Splits> out;
  for (const std::string& file : files) {
    std::smatch match;
    if (!std::regex_match(file, match, layout)) return {};
    add_hub_files(match[2], {file}, out[match[1]]);
  }
  return out;
}

}  // namespace lockstep
