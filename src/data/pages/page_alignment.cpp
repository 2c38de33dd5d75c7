#include "data/pages/page_alignment.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>

namespace lockstep {

namespace {

using Blocks = std::span<const PageBlock>;

bool most_have_ids(Blocks blocks) {
  const auto with =
      std::count_if(blocks.begin(), blocks.end(), [](const PageBlock& b) { return !b.id.empty(); });
  return 2 * with > static_cast<std::ptrdiff_t>(blocks.size());
}

std::vector<TextPair> align_by_id(Blocks source, Blocks target) {
  std::map<std::string_view, const PageBlock*> there;  // null: the id is not unique
  for (const PageBlock& block : target) {
    auto [at, is_new] = there.try_emplace(block.id, &block);
    if (!is_new) at->second = nullptr;
  }
  std::vector<TextPair> out;
  for (const PageBlock& block : source) {
    auto found = block.id.empty() ? there.end() : there.find(block.id);
    if (found == there.end() || found->second == nullptr) continue;
    out.emplace_back(block.text, found->second->text);
    found->second = nullptr;
  }
  return out;
}

bool same_kinds(Blocks source, Blocks target) {
  return std::equal(source.begin(), source.end(), target.begin(), target.end(),
                    [](const PageBlock& a, const PageBlock& b) { return a.kind == b.kind; });
}

void add_all(Blocks source, Blocks target, std::vector<TextPair>& out) {
  for (std::size_t i = 0; i < source.size(); ++i) {
    out.emplace_back(source[i].text, target[i].text);
  }
}

// Returns the sections, each from a heading to the next; the first one has what is before.
std::vector<Blocks> sections_of(Blocks blocks) {
  std::vector<Blocks> out;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= blocks.size(); ++i) {
    if (i < blocks.size() && !blocks[i].is_heading) continue;
    out.push_back(blocks.subspan(begin, i - begin));
    begin = i;
  }
  return out;
}

}  // namespace

std::vector<TextPair> align_blocks(const std::vector<PageBlock>& source,
                                   const std::vector<PageBlock>& target) {
  if (most_have_ids(source) && most_have_ids(target)) return align_by_id(source, target);
  std::vector<TextPair> out;
  if (same_kinds(source, target)) {
    add_all(source, target, out);
    return out;
  }
  const std::vector<Blocks> sections = sections_of(source);
  const std::vector<Blocks> translated = sections_of(target);
  const bool as_many =
      translated.size() == sections.size() || translated.size() == sections.size() + 1;
  if (!as_many) return out;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (same_kinds(sections[i], translated[i])) add_all(sections[i], translated[i], out);
  }
  return out;
}

}  // namespace lockstep
