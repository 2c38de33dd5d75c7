#include "data/parallel/debian_index.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::size_t kSha256Digits = 64;

bool is_sha256(std::string_view text) {
  return text.size() == kSha256Digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<int64_t> size_in(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Calls visit(line) for every line, without its LF.
template <typename Visit>
void for_each_line_of(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Returns x for the line "Package: x" and the field "Package:", and nothing for a line of another
// field.
std::optional<std::string_view> field_of(std::string_view line, std::string_view field) {
  if (!line.starts_with(field)) return std::nullopt;
  return trim(line.substr(field.size()));
}

PackageRecord read_paragraph(std::string_view paragraph, const std::string& name) {
  PackageRecord out;
  for_each_line_of(paragraph, [&](std::string_view line) {
    if (auto value = field_of(line, "Package:")) out.name = *value;
    if (auto value = field_of(line, "Version:")) out.version = *value;
    if (auto value = field_of(line, "Filename:")) out.path = *value;
    if (auto value = field_of(line, "Size:")) out.check.bytes = size_in(*value).value_or(-1);
    if (auto value = field_of(line, "SHA256:")) out.check.sha256 = *value;
  });
  const std::string file = out.path.substr(out.path.rfind('/') + 1);
  if (out.check.bytes < 0 || !is_sha256(out.check.sha256) || !file.starts_with(out.name + "_") ||
      !file.ends_with(".deb")) {
    throw DataError("{}: {} without a whole Filename, Size or SHA256", name, out.name);
  }
  return out;
}

// Calls visit(name, paragraph) for every package of an index.
template <typename Visit>
void for_each_package(std::string_view index, const Visit& visit) {
  while (!index.empty()) {
    const std::size_t end = std::min(index.find("\n\n"), index.size());
    const std::string_view paragraph = index.substr(0, end);
    index.remove_prefix(std::min(end + 2, index.size()));
    for_each_line_of(paragraph, [&](std::string_view line) {
      if (auto name = field_of(line, "Package:")) visit(*name, paragraph);
    });
  }
}

// Returns size and SHA-256 that a Release gives for a file; nothing when it does not list it.
std::optional<FileCheck> find_check(std::string_view release, const std::string& path) {
  std::optional<FileCheck> out;
  bool inside = false;
  for_each_line_of(release, [&](std::string_view line) {
    if (!line.starts_with(' ')) {
      inside = line.starts_with("SHA256:");
      return;
    }
    const std::vector<std::string_view> words = split_words(line);  // digits, bytes, path
    if (!inside || words.size() != 3 || words[2] != path || !is_sha256(words[0])) return;
    out = {.bytes = size_in(words[1]).value_or(-1), .sha256 = std::string(words[0]), .md5 = {}};
  });
  return out;
}

}  // namespace

bool is_in_release(std::string_view release, const std::string& path) {
  return find_check(release, path).has_value();
}

FileCheck check_in_release(std::string_view release, const std::string& name,
                           const std::string& path) {
  std::optional<FileCheck> out = find_check(release, path);
  if (!out) throw DataError("{}: no SHA256 of {} in it", name, path);
  return std::move(*out);
}

std::vector<PackageRecord> all_in_index(std::string_view index, const std::string& name) {
  std::map<std::string, std::size_t, std::less<>> numbers;
  std::vector<PackageRecord> out;
  for_each_package(index, [&](std::string_view package, std::string_view paragraph) {
    auto [at, is_new] = numbers.try_emplace(std::string(package), out.size());
    if (is_new) out.emplace_back();
    out[at->second] = read_paragraph(paragraph, name);
  });
  if (out.empty()) throw DataError("{}: no index of packages", name);
  return out;
}

std::vector<PackageRecord> find_in_index(std::string_view index, const std::string& name,
                                         const std::vector<std::string>& packages) {
  std::vector<std::optional<PackageRecord>> found(packages.size());
  std::vector<std::string> there;
  for_each_package(index, [&](std::string_view package, std::string_view paragraph) {
    there.emplace_back(package);
    for (std::size_t i = 0; i < packages.size(); ++i) {
      if (package == packages[i]) found[i] = read_paragraph(paragraph, name);
    }
  });
  if (there.empty()) throw DataError("{}: no index of packages", name);
  std::vector<PackageRecord> out;
  for (std::size_t i = 0; i < packages.size(); ++i) {
    if (!found[i]) {
      throw DataError("{}: no package {}{}", name, packages[i], did_you_mean(packages[i], there));
    }
    out.push_back(std::move(*found[i]));
  }
  return out;
}

}  // namespace lockstep
