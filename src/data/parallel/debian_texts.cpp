#include "data/parallel/debian_texts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/ordered_parallel.h"
#include "base/text.h"
#include "base/usable_cores.h"
#include "data/fetch/archive_entries.h"
#include "data/lines/progress.h"
#include "data/pages/page_alignment.h"
#include "data/pages/page_blocks.h"
#include "data/parallel/gettext_corpus.h"
#include "data/parallel/gettext_text.h"

namespace lockstep {

namespace {

std::string text_of(const std::vector<std::byte>& content) {
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

// What is read of one package.
struct PackageTexts {
  int64_t number = 0;  // of the package
  int64_t catalogues = 0, unreadable = 0;
  ParallelText messages;
  std::vector<std::pair<std::string, std::vector<PageBlock>>> pages;  // by path
};

class PackageReader {
 public:
  PackageReader(const DebianSuite& suite, const TranslatedFiles& files, const Languages& languages,
                const CleaningRules& rules)
      : suite_(suite), files_(files), languages_(languages), rules_(rules) {
    for (const PagePaths& page : files.pages) {
      pages_.insert(page.source);
      pages_.insert(page.target);
    }
  }

  PackageTexts read(int64_t number) const {
    PackageTexts out;
    out.number = number;
    const fs::path path = suite_.file_of(files_.packages[static_cast<std::size_t>(number)]);
    for_each_file_of(path, [&](const std::string& file, ArchiveEntries& entries) {
      if (kind_of(file, languages_) == TextKind::kCatalogue) {
        read_catalogue(path.string() + ": " + file, entries.read(), out);
      } else if (pages_.contains(file)) {
        read_page(file, entries.read(), out);
      }
    });
    return out;
  }

 private:
  void read_catalogue(const std::string& name, const std::vector<std::byte>& content,
                      PackageTexts& out) const {
    try {
      add_catalogue(parse_mo_file(content, name), {.rules = rules_, .all_marks = true},
                    out.messages);
      ++out.catalogues;
    } catch (const DataError&) {  // another charset, most often
      ++out.unreadable;
    }
  }

  void read_page(const std::string& file, std::vector<std::byte> content, PackageTexts& out) const {
    std::string text = text_of(content);
    if (file.ends_with(".gz")) {
      try {
        text = decompressed(std::move(content), file);
      } catch (const DataError&) {
        text = "\xff";
      }
    }
    if (invalid_utf8_at(text)) {
      ++out.unreadable;
      return;
    }
    const bool manual = file.starts_with("usr/share/man/");
    out.pages.emplace_back(file, manual ? manual_blocks(text) : markup_blocks(text));
  }

  const DebianSuite& suite_;
  const TranslatedFiles& files_;
  const Languages& languages_;
  const CleaningRules& rules_;
  std::unordered_set<std::string> pages_;
};

// Puts what the packages hold together.
class TextCollector {
 public:
  TextCollector(const TranslatedFiles& files, const CleaningRules& rules)
      : files_(files), rules_(rules) {}

  void add(PackageTexts&& package) {
    unreadable_ += package.unreadable;
    if (package.messages.lines > 0) {
      const int32_t source = source_number(package.number, TextKind::kCatalogue);
      PackageSource& record = out_.sources[static_cast<std::size_t>(source)];
      record.files += package.catalogues;
      record.lines += package.messages.lines;
      out_.text.lines += package.messages.lines;
      for (const auto& [reason, count] : package.messages.dropped) {
        out_.text.dropped[reason] += count;
      }
      for (int64_t i = 0; i < package.messages.pairs.size(); ++i) {
        const PairView pair = package.messages.pairs[i];
        add_pair(pair.source, pair.target, source);
      }
    }
    for (auto& [path, blocks] : package.pages) {
      pages_.try_emplace(path, Page{package.number, std::move(blocks)});
    }
  }

  DebianTexts finish() {
    int64_t apart = 0;
    for (const PagePaths& page : files_.pages) {
      auto source = pages_.find(page.source);
      auto target = pages_.find(page.target);
      if (source == pages_.end() || target == pages_.end()) continue;
      const std::vector<TextPair> pairs =
          align_blocks(source->second.blocks, target->second.blocks);
      if (pairs.empty()) {
        ++apart;
        continue;
      }
      add_page(pairs, source_number(target->second.package, page.kind));
    }
    log_info(
        "left out: {} files that are damaged or not UTF-8, {} pages of other paragraphs than "
        "their originals",
        with_commas(unreadable_), with_commas(apart));
    return std::move(out_);
  }

 private:
  struct Page {
    int64_t package = 0;
    std::vector<PageBlock> blocks;
  };

  int32_t source_number(int64_t package, TextKind kind) {
    auto [at, is_new] =
        numbers_.try_emplace({package, kind}, static_cast<int32_t>(out_.sources.size()));
    if (is_new) {
      const PackageRecord& record = files_.packages[static_cast<std::size_t>(package)];
      out_.sources.push_back({record.name, record.version, kind});
    }
    return at->second;
  }

  void add_page(const std::vector<TextPair>& pairs, int32_t source) {
    PackageSource& record = out_.sources[static_cast<std::size_t>(source)];
    ++record.files;
    for (const TextPair& texts : pairs) {
      ++record.lines;
      ++out_.text.lines;
      MessagePair pair{texts.first, texts.second};
      std::optional<std::string> reason = clean_messages(pair, false);
      if (!reason) reason = reason_to_drop({pair.source, pair.target}, rules_);
      if (reason) {
        ++out_.text.dropped[*reason];
      } else {
        add_pair(pair.source, pair.target, source);
      }
    }
  }

  void add_pair(std::string_view source, std::string_view target, int32_t from) {
    out_.text.pairs.add(source, target);
    out_.source_of.push_back(from);
  }

  const TranslatedFiles& files_;
  const CleaningRules& rules_;
  DebianTexts out_;
  std::map<std::pair<int64_t, TextKind>, int32_t> numbers_;
  std::map<std::string, Page> pages_;
  int64_t unreadable_ = 0;
};

}  // namespace

DebianTexts read_debian_texts(const DebianSuite& suite, const TranslatedFiles& files,
                              const Languages& languages, const CleaningRules& rules) {
  const PackageReader reader(suite, files, languages, rules);
  TextCollector collector(files, rules);
  const auto packages = static_cast<int64_t>(files.packages.size());
  Progress progress("reading", "packages", packages);
  ordered_parallel(
      packages, usable_threads(), [&](int64_t number) { return reader.read(number); },
      [&](PackageTexts package) {
        progress.update(package.number + 1);
        collector.add(std::move(package));
      });
  return collector.finish();
}

}  // namespace lockstep
