#include "data/parallel/wmt_archives.h"

#include <algorithm>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr const char* kStatmt = "https://www.statmt.org";
constexpr const char* kStatmtData = "https://data.statmt.org";

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  });
}

struct ChecksumLine {
  FileCheck check;
  std::string name;
};

// Parses "HEX  NAME" or "HEX *NAME".
ChecksumLine parse_checksum(std::string_view line, const std::string& place) {
  std::size_t end = std::min(line.find(' '), line.size());
  std::string_view digits = line.substr(0, end);
  std::string_view name = trim(line.substr(end));
  if (name.starts_with('*')) name.remove_prefix(1);
  if (name.starts_with("./")) name.remove_prefix(2);
  bool fits = (digits.size() == 64 || digits.size() == 32) && is_hex(digits) && !name.empty();
  if (!fits) {
    throw DataError("{}: expected a line of sha256sum or md5sum: digits, two spaces, a name",
                    place);
  }
  ChecksumLine out;
  (digits.size() == 64 ? out.check.sha256 : out.check.md5) = lower_ascii(digits);
  out.name = name;
  return out;
}

fs::path find_in_folder(const WmtArchive& archive, const fs::path& folder) {
  for (const std::string& name : {archive.place, archive.name}) {
    if (fs::exists(folder / name)) return folder / name;
  }
  DataError error("{}: has neither {} nor {}", folder.string(), archive.place, archive.name);
  error.set_cause("--mirror names a folder, which must hold all archives");
  throw error;
}

}  // namespace

// Size and SHA-256 of the second and third archive are from TensorFlow Datasets' checksums of
// WMT16, the MD5 of the test sets from sacreBLEU 2.6.0. No published checksum was found for
// Europarl's English-German archive: its size and SHA-256 are recorded in the manifest, and
// --checksums can require them.
const std::vector<WmtArchive>& wmt16_training_archives() {
  static const std::vector<WmtArchive> archives{
      {.name = "europarl-v7-de-en.tgz",
       .place = "europarl/v7/de-en.tgz",
       .server = kStatmt,
       .check = {},
       .source_entry = "europarl-v7.de-en.en",
       .target_entry = "europarl-v7.de-en.de",
       .pairs = 1'920'209},
      {.name = "training-parallel-commoncrawl.tgz",
       .place = "wmt13/training-parallel-commoncrawl.tgz",
       .server = kStatmt,
       .check = {.bytes = 918'311'367,
                 .sha256 = "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5"},
       .source_entry = "commoncrawl.de-en.en",
       .target_entry = "commoncrawl.de-en.de",
       .pairs = 2'399'123},
      {.name = "training-parallel-nc-v11.tgz",
       .place = "wmt16/translation-task/training-parallel-nc-v11.tgz",
       .server = kStatmtData,
       .check = {.bytes = 75'178'032,
                 .sha256 = "cfe8ab047e05043476e498ee765c98e939c7b7d6d294e856344c84476b619d6a"},
       .source_entry = "news-commentary-v11.de-en.en",
       .target_entry = "news-commentary-v11.de-en.de",
       .pairs = 242'770}};
  return archives;
}

const WmtArchive& wmt13_test_archive() {
  static const WmtArchive archive{.name = "wmt13-test.tgz",
                                  .place = "wmt13/test.tgz",
                                  .server = kStatmt,
                                  .check = {.md5 = "48eca5d02f637af44e85186847141f67"},
                                  .source_entry = "newstest2013-src.en.sgm",
                                  .target_entry = "newstest2013-src.de.sgm",
                                  .pairs = 3'000};
  return archive;
}

const WmtArchive& wmt14_test_archive(bool full) {
  static const WmtArchive filtered{.name = "wmt14-test-filtered.tgz",
                                   .place = "wmt14/test-filtered.tgz",
                                   .server = kStatmt,
                                   .check = {.md5 = "84c597844c1542e29c2aff23aaee4310"},
                                   .source_entry = "newstest2014-deen-src.en.sgm",
                                   .target_entry = "newstest2014-deen-ref.de.sgm",
                                   .pairs = 2'737};
  static const WmtArchive whole{.name = "wmt14-test-full.tgz",
                                .place = "wmt14/test-full.tgz",
                                .server = kStatmt,
                                .check = {.md5 = "a8cd784e006feb32ac6f3d9ec7eb389a"},
                                .source_entry = "newstest2014-deen-src.en.sgm",
                                .target_entry = "newstest2014-deen-ref.de.sgm",
                                .pairs = 3'003};
  return full ? whole : filtered;
}

std::vector<WmtArchive> with_checks(std::vector<WmtArchive> archives, const FetchOptions& options) {
  if (options.checksums.empty()) return archives;
  if (options.checksums == "none") {
    for (WmtArchive& archive : archives) archive.check = {};
    return archives;
  }
  std::vector<std::string> used;
  for_each_line(options.checksums, [&](std::string_view line, int64_t number) {
    if (trim(line).empty() || line.starts_with('#')) return;
    ChecksumLine one = parse_checksum(line, fmt::format("{}:{}", options.checksums, number));
    for (WmtArchive& archive : archives) {
      if (one.name != archive.name && one.name != archive.place) continue;
      archive.check = one.check;
      used.push_back(one.name);
    }
  });
  if (used.empty()) {
    std::vector<std::string> names;
    for (const WmtArchive& archive : archives) names.push_back(archive.name);
    throw ConfigError("{}: names none of the archives ({})", options.checksums, join(names, ", "));
  }
  return archives;
}

std::vector<fs::path> fetch_archives(const std::vector<WmtArchive>& archives, const fs::path& cache,
                                     const FetchOptions& options) {
  bool is_url = options.mirror.find("://") != std::string::npos;
  bool is_folder = !options.mirror.empty() && !is_url;
  if (is_folder && !fs::is_directory(options.mirror)) {
    throw ConfigError("--mirror {}: no such folder; expected one or a URL", options.mirror);
  }
  std::vector<fs::path> out;
  for (const WmtArchive& archive : archives) {
    if (is_folder) {
      out.push_back(find_in_folder(archive, options.mirror));
      check_file(out.back(), archive.check);
      continue;
    }
    std::error_code error;
    fs::create_directories(cache, error);
    if (error) throw MachineError("{}: cannot be created: {}", cache.string(), error.message());
    std::string base = is_url ? options.mirror : archive.server;
    if (!base.ends_with('/')) base += '/';
    out.push_back(cache / archive.name);
    download({base + archive.place, out.back(), archive.check, {}}, options.download);
  }
  return out;
}

}  // namespace lockstep
