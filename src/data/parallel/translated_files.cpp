#include "data/parallel/translated_files.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/byte_reader.h"
#include "base/error.h"
#include "base/text.h"
#include "data/lines/numbered_lines.h"

namespace lockstep {

namespace {

using namespace std::string_view_literals;

constexpr std::array kPageEndings = {".html"sv, ".htm"sv, ".xhtml"sv, ".docbook"sv, ".page"sv};

// Returns how a path writes a language: "de", "de-DE", "de_DE"; of English "C" and "en-US" too.
std::vector<std::string> spellings_of(const std::string& language) {
  if (language == "en") return {"en", "C", "en-US", "en_US", "en-GB", "en_GB"};
  std::string country;
  for (char c : language) country += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return {language, language + "-" + country, language + "_" + country};
}

bool is_page(std::string_view path) {
  return std::any_of(kPageEndings.begin(), kPageEndings.end(),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

// A place in a path that names the language: a folder ("/de/") or a part of the file's name
// (".de.").
struct LanguagePlace {
  std::size_t begin = 0, length = 0;
  char around = '/';
};

std::optional<LanguagePlace> place_of(std::string_view path, const std::string& language) {
  for (const std::string& spelling : spellings_of(language)) {
    for (char around : {'/', '.'}) {
      const std::string wanted = around + spelling + around;
      const std::size_t at = path.rfind(wanted);
      if (at != std::string_view::npos) return LanguagePlace{at + 1, spelling.size(), around};
    }
  }
  return std::nullopt;
}

std::string replaced(std::string_view path, const LanguagePlace& place, const std::string& by) {
  std::string out(path.substr(0, place.begin));
  out += by;
  // Without a spelling the separator after it goes too: "a/de/b" -> "a/b".
  out += path.substr(place.begin + place.length + (by.empty() ? 1 : 0));
  return out;
}

// Calls visit(path, packages) for each line of a list of contents, `packages` being
// "section/name,section/name".
template <typename Visit>
void for_each_content(const fs::path& list, const Visit& visit) {
  auto file = std::make_shared<ByteReader>(list);
  LineReader lines([file](char* to, std::size_t most) { return file->read(to, most); });
  while (std::optional<NumberedLines> block = lines.next()) {
    for (int64_t i = 0; i < block->size(); ++i) {
      const std::string_view line = trim((*block)[i]);
      const std::size_t gap = line.find_last_of(" \t");
      if (gap == std::string_view::npos) continue;
      visit(trim(line.substr(0, gap)), line.substr(gap + 1));
    }
  }
}

std::vector<std::string> package_names(std::string_view list) {
  std::vector<std::string> out;
  for (const std::string& entry : split(list, ','))
    out.push_back(entry.substr(entry.rfind('/') + 1));
  return out;
}

// The texts of a suite and who has them.
class ContentsSearch {
 public:
  explicit ContentsSearch(Languages languages) : languages_(std::move(languages)) {}

  void read(const std::vector<fs::path>& lists) {
    for (const fs::path& list : lists) {
      for_each_content(list, [&](std::string_view path, std::string_view packages) {
        std::optional<TextKind> kind = kind_of(path, languages_);
        if (!kind) return;
        add(path, packages);
        if (*kind == TextKind::kCatalogue) return;
        pages_.emplace(path, *kind);
        for (std::string& original : originals_of(path, languages_)) {
          wanted_.insert(std::move(original));
        }
      });
    }
    for (const fs::path& list : lists) {  // the originals are known only now
      for_each_content(list, [&](std::string_view path, std::string_view packages) {
        if (wanted_.contains(std::string(path))) add(path, packages);
      });
    }
  }

  TranslatedFiles choose(const std::vector<PackageRecord>& packages, int64_t most_bytes) {
    std::unordered_map<std::string, const PackageRecord*> by_name;
    for (const PackageRecord& package : packages) by_name.emplace(package.name, &package);
    drop_lone_pages(by_name, most_bytes);
    std::map<std::string, std::vector<std::string>> texts_of;  // by package
    for (const auto& [path, holders] : holders_) {
      if (!is_needed(path)) continue;
      for (const std::string& holder : holders) {
        if (by_name.contains(holder)) texts_of[holder].push_back(path);
      }
    }
    return take_packages(texts_of, by_name, most_bytes);
  }

 private:
  void add(std::string_view path, std::string_view packages) {
    std::set<std::string>& holders = holders_[std::string(path)];
    for (std::string& name : package_names(packages)) holders.insert(std::move(name));
  }

  // Pairs pages with their originals; those without one in a package that may be taken are of no
  // use.
  void drop_lone_pages(const std::unordered_map<std::string, const PackageRecord*>& by_name,
                       int64_t most_bytes) {
    auto can_be_had = [&](const std::string& path) {
      auto found = holders_.find(path);
      if (found == holders_.end()) return false;
      return std::any_of(found->second.begin(), found->second.end(), [&](const std::string& name) {
        auto package = by_name.find(name);
        return package != by_name.end() && package->second->check.bytes <= most_bytes;
      });
    };
    for (const auto& [path, kind] : pages_) {
      if (!can_be_had(path)) continue;
      for (const std::string& original : originals_of(path, languages_)) {
        if (!can_be_had(original)) continue;
        out_.pages.push_back({original, path, kind});
        needed_.insert(path);
        needed_.insert(original);
        break;
      }
    }
  }

  bool is_needed(const std::string& path) const {
    return needed_.contains(path) || kind_of(path, languages_) == TextKind::kCatalogue;
  }

  TranslatedFiles take_packages(
      const std::map<std::string, std::vector<std::string>>& texts_of,
      const std::unordered_map<std::string, const PackageRecord*>& by_name, int64_t most_bytes) {
    std::vector<const PackageRecord*> smallest_first;
    for (const auto& [name, texts] : texts_of) smallest_first.push_back(by_name.at(name));
    std::stable_sort(smallest_first.begin(), smallest_first.end(),
                     [](const PackageRecord* a, const PackageRecord* b) {
                       return a->check.bytes < b->check.bytes;
                     });
    std::unordered_set<std::string> had;
    for (const PackageRecord* package : smallest_first) {
      if (package->check.bytes > most_bytes) {
        ++out_.too_large;
        out_.too_large_bytes += package->check.bytes;
        continue;
      }
      bool has_new = false;
      for (const std::string& path : texts_of.at(package->name)) {
        const bool is_new = had.insert(path).second;
        has_new = has_new || is_new;
        out_.catalogues += is_new && !needed_.contains(path);
      }
      if (has_new) out_.packages.push_back(*package);
    }
    std::sort(out_.packages.begin(), out_.packages.end(),
              [](const PackageRecord& a, const PackageRecord& b) { return a.name < b.name; });
    return std::move(out_);
  }

  Languages languages_;
  std::map<std::string, std::set<std::string>> holders_;  // packages by path
  std::map<std::string, TextKind> pages_;
  std::unordered_set<std::string> wanted_, needed_;
  TranslatedFiles out_;
};

}  // namespace

const char* name_of(TextKind kind) {
  switch (kind) {
    case TextKind::kCatalogue:
      return "message catalogues";
    case TextKind::kManual:
      return "manual pages";
    case TextKind::kHelp:
      return "help pages";
    case TextKind::kHandbook:
      return "handbooks";
  }
  return "";
}

std::optional<TextKind> kind_of(std::string_view path, const Languages& languages) {
  if (path.ends_with(".mo")) {
    const bool right =
        path.find("/" + languages.target + "/LC_MESSAGES/") != std::string_view::npos;
    return right ? std::optional(TextKind::kCatalogue) : std::nullopt;
  }
  if (path.starts_with("usr/share/man/" + languages.target + "/man")) return TextKind::kManual;
  if (path.find(languages.target) == std::string_view::npos || !is_page(path)) return std::nullopt;
  if (!place_of(path, languages.target)) return std::nullopt;
  const bool help = path.starts_with("usr/share/help/") ||
                    path.starts_with("usr/share/gnome/help/") ||
                    path.find("/doc/HTML/") != std::string_view::npos ||
                    path.find("/doc/kde/HTML/") != std::string_view::npos ||
                    path.starts_with("usr/share/libreoffice/help/");
  return help ? TextKind::kHelp : TextKind::kHandbook;
}

std::vector<std::string> originals_of(std::string_view path, const Languages& languages) {
  const std::optional<LanguagePlace> place = place_of(path, languages.target);
  if (!place) return {};
  std::vector<std::string> out;
  if (path.starts_with("usr/share/man/")) return {replaced(path, *place, "")};
  for (const std::string& spelling : spellings_of(languages.source)) {
    out.push_back(replaced(path, *place, spelling));
  }
  if (place->around == '.') out.push_back(replaced(path, *place, ""));
  return out;
}

TranslatedFiles find_translated_files(const std::vector<fs::path>& contents,
                                      const std::vector<PackageRecord>& packages,
                                      const Languages& languages, int64_t most_bytes) {
  ContentsSearch search(languages);
  search.read(contents);
  return search.choose(packages, most_bytes);
}

}  // namespace lockstep
