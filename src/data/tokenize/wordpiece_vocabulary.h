// The pieces of a WordPiece vocabulary and two ways to find words in it: a hash table for words
// that are a piece, as most are, and a byte tree for the longest piece at a position of all other
// words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class WordPieceVocabulary {
 public:
  // Below, `word` must be followed by this many bytes that may be read (and are ignored).
  static constexpr std::size_t kPadding = 8;

  // Of equal pieces the last one counts. A piece that starts with "##" continues a word.
  explicit WordPieceVocabulary(std::vector<std::string> pieces);

  std::size_t size() const { return pieces_.size(); }
  const std::string& piece(int32_t id) const { return pieces_[static_cast<std::size_t>(id)]; }
  std::optional<int32_t> find(std::string_view piece) const;

  // Returns the id of a padded word that is a piece, or -1.
  int32_t find_padded(const char* word, std::size_t size) const;

  // Appends the pieces of a word that is not itself a piece, the longest first from its start.
  // Returns false and appends nothing if no piece fits at some position.
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

  uint32_t child(uint32_t node, char byte) const;  // 0: none, since no edge leads to the root
  void add_to_tree(std::string_view text, uint32_t root, int32_t id);
  std::size_t edge_place(uint64_t key) const;

  std::vector<std::string> pieces_;
  std::vector<Slot> slots_;       // its size is a power of two; at most half full
  std::vector<Edge> edges_;       // likewise
  std::vector<int32_t> node_id_;  // by node: the piece that ends there, or -1
};

}  // namespace lockstep
