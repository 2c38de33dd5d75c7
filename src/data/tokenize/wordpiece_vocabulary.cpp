#include "data/tokenize/wordpiece_vocabulary.h"

#include <bit>
#include <cstring>
#include <utility>

namespace lockstep {

namespace {

constexpr uint32_t kWordRoot = 0, kContinuationRoot = 1;
constexpr std::string_view kContinuation = "##";

// Hashes eight bytes at a time. Bytes after the end are masked off.
uint64_t hash_padded(const char* word, std::size_t size) {
  uint64_t hash = size;
  while (true) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, word, sizeof bytes);
    if (size < 8) bytes &= (uint64_t{1} << (8 * size)) - 1;
    hash = (hash ^ bytes) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
    if (size <= 8) return hash * 0xbf58476d1ce4e5b9u;
    size -= 8;
    word += 8;
  }
}

}  // namespace

static_assert(std::endian::native == std::endian::little, "hash_padded() masks the last bytes");

WordPieceVocabulary::WordPieceVocabulary(std::vector<std::string> pieces)
    : pieces_(std::move(pieces)) {
  std::size_t bytes = 0;
  for (const std::string& piece : pieces_) bytes += piece.size();
  slots_.resize(std::bit_ceil(2 * pieces_.size() + 2));
  edges_.resize(std::bit_ceil(2 * bytes + 2));
  node_id_.assign(2, -1);
  std::string padded;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const std::string& piece = pieces_[i];
    auto id = static_cast<int32_t>(i);
    padded.assign(piece).append(kPadding, '\0');
    uint64_t hash = hash_padded(padded.data(), piece.size());
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].id >= 0 && this->piece(slots_[at].id) != piece) {
      at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = {static_cast<uint32_t>(hash >> 32), id};
    if (piece.starts_with(kContinuation)) {
      add_to_tree(std::string_view(piece).substr(kContinuation.size()), kContinuationRoot, id);
    } else {
      add_to_tree(piece, kWordRoot, id);
    }
  }
}

std::size_t WordPieceVocabulary::edge_place(uint64_t key) const {
  std::size_t at = (key * 0x9E3779B97F4A7C15u) >> 32;
  while (true) {
    at &= edges_.size() - 1;
    if (edges_[at].key == key || edges_[at].key == UINT64_MAX) return at;
    ++at;
  }
}

uint32_t WordPieceVocabulary::child(uint32_t node, char byte) const {
  uint64_t key = uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  const Edge& edge = edges_[edge_place(key)];
  return edge.key == key ? edge.node : 0;
}

void WordPieceVocabulary::add_to_tree(std::string_view text, uint32_t root, int32_t id) {
  uint32_t node = root;
  for (char byte : text) {
    uint64_t key = uint64_t{node} << 8 | static_cast<unsigned char>(byte);
    Edge& edge = edges_[edge_place(key)];
    if (edge.key != key) {
      edge = {key, static_cast<uint32_t>(node_id_.size())};
      node_id_.push_back(-1);
    }
    node = edge.node;
  }
  if (!text.empty()) node_id_[node] = id;
}

int32_t WordPieceVocabulary::find_padded(const char* word, std::size_t size) const {
  uint64_t hash = hash_padded(word, size);
  auto tag = static_cast<uint32_t>(hash >> 32);
  for (std::size_t at = hash & (slots_.size() - 1); slots_[at].id >= 0;
       at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].tag != tag) continue;
    const std::string& found = piece(slots_[at].id);
    if (found.size() == size && std::memcmp(found.data(), word, size) == 0) return slots_[at].id;
  }
  return -1;
}

std::optional<int32_t> WordPieceVocabulary::find(std::string_view piece) const {
  std::string padded(piece);
  padded.append(kPadding, '\0');
  int32_t id = find_padded(padded.data(), piece.size());
  return id >= 0 ? std::optional(id) : std::nullopt;
}

bool WordPieceVocabulary::split(std::string_view word, std::vector<int32_t>& ids) const {
  std::size_t before = ids.size();
  for (std::size_t start = 0; start < word.size();) {
    uint32_t node = start == 0 ? kWordRoot : kContinuationRoot;
    std::size_t end = start;
    int32_t longest = -1;
    for (std::size_t i = start; i < word.size(); ++i) {
      node = child(node, word[i]);
      if (node == 0) break;
      if (node_id_[node] < 0) continue;
      longest = node_id_[node];
      end = i + 1;
    }
    if (longest < 0) {
      ids.resize(before);
      return false;
    }
    ids.push_back(longest);
    start = end;
  }
  return true;
}

}  // namespace lockstep
