// The pieces of a WordPiece vocabulary and how to find words in it: a hash table for whole words,
// which most words are, and a tree of bytes for the longest piece at a place in the others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class WordPieceVocabulary {
 public:
  // `words` below have so many bytes that may be read (and are ignored) behind their end.
  static constexpr std::size_t kPadding = 8;

  // Of equal pieces the last counts. A piece that starts with "##" continues a word.
  explicit WordPieceVocabulary(std::vector<std::string> pieces);

  std::size_t size() const { return pieces_.size(); }
  const std::string& piece(int32_t id) const { return pieces_[static_cast<std::size_t>(id)]; }
  std::optional<int32_t> find(std::string_view piece) const;

  // The id of a padded word that is a piece, -1 for none.
  int32_t find_padded(const char* word, std::size_t size) const;

  // Appends the pieces of a word that is none, longest first from its start; false, and nothing
  // appended, where at some place no piece fits.
  bool split(std::string_view word, std::vector<int32_t>& ids) const;

 private:
  struct Slot {
    uint32_t tag = 0;  // the upper half of the hash
    int32_t id = -1;
  };
  struct Edge {
    uint64_t key = UINT64_MAX;  // node << 8 | byte
    uint32_t node = 0;
  };

  uint32_t child(uint32_t node, char byte) const;  // 0: none, as nothing leads to the root
  void add_to_tree(std::string_view text, uint32_t root, int32_t id);
  std::size_t edge_place(uint64_t key) const;

  std::vector<std::string> pieces_;
  std::vector<Slot> slots_;       // size a power of two, half empty
  std::vector<Edge> edges_;       // the same
  std::vector<int32_t> node_id_;  // by node: the piece that ends here, or -1
};

}  // namespace lockstep
