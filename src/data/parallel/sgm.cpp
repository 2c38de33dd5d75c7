#include "data/parallel/sgm.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/parallel/pair_cleaner.h"

namespace lockstep {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kEntities{
    {{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}}};

bool starts_with_letters(std::string_view text, std::string_view letters) {
  return equals_ignoring_case(text.substr(0, letters.size()), letters);
}

// Returns where the tag `<name` or `</name` begins, ignoring case; npos if there is none.
std::size_t find_tag(std::string_view text, std::string_view tag, std::size_t from) {
  for (std::size_t at = text.find('<', from); at != std::string_view::npos;
       at = text.find('<', at + 1)) {
    if (starts_with_letters(text.substr(at), tag)) return at;
  }
  return std::string_view::npos;
}

// Returns the value of name="value" in a tag, with either kind of quotes or without.
std::optional<std::string> attribute(std::string_view tag, std::string_view name) {
  for (std::size_t at = 0; at + name.size() < tag.size(); ++at) {
    if (tag[at] != ' ' || !starts_with_letters(tag.substr(at + 1), name)) continue;
    std::string_view rest = tag.substr(at + 1 + name.size());
    if (rest.empty() || rest.front() != '=') continue;
    rest.remove_prefix(1);
    char quote = rest.empty() ? '\0' : rest.front();
    if (quote == '"' || quote == '\'') {
      rest.remove_prefix(1);
      return std::string(rest.substr(0, rest.find(quote)));
    }
    return std::string(rest.substr(0, rest.find_first_of(" >")));
  }
  return std::nullopt;
}

std::string resolve_entities(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t at = std::min(text.find('&'), text.size());
    out.append(text.substr(0, at));
    text.remove_prefix(at);
    if (text.empty()) break;
    std::string_view found = text.substr(0, 1);
    std::string_view meaning = found;
    for (const auto& [entity, character] : kEntities) {
      if (text.starts_with(entity)) found = entity, meaning = character;
    }
    out.append(meaning);
    text.remove_prefix(found.size());
  }
  return out;
}

}  // namespace

std::vector<SgmSegment> read_sgm(std::string_view text, const std::string& name) {
  std::vector<SgmSegment> out;
  std::string document;
  std::size_t at = 0;
  while (true) {
    std::size_t segment = find_tag(text, "<seg ", at);
    if (segment == std::string_view::npos) break;
    for (std::size_t doc; (doc = find_tag(text.substr(0, segment), "<doc ", at)) != text.npos;) {
      std::string_view tag = text.substr(doc, text.find('>', doc) - doc);
      document = attribute(tag, "docid").value_or("");
      at = doc + 1;
    }
    std::size_t begin = text.find('>', segment);
    std::size_t end = find_tag(text, "</seg", segment);
    std::optional<std::string> id;
    if (begin < end && end != std::string_view::npos) {
      id = attribute(text.substr(segment, begin - segment), "id");
    }
    if (!id) throw DataError("{}: segment {} has no number or no end", name, out.size() + 1);
    SgmSegment one{document + "/" + *id, {}};
    squeeze_spaces(resolve_entities(text.substr(begin + 1, end - begin - 1)), one.text);
    out.push_back(std::move(one));
    at = end;
  }
  if (out.empty()) throw DataError("{}: holds no segment (<seg id=...>)", name);
  return out;
}

}  // namespace lockstep
