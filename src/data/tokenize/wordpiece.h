// WordPiece (Schuster and Nakajima 2012) with BERT's vocabularies and normalization (Devlin et al.
// 2018). It gives the ids of the `tokenizers` library 0.22 with BertWordPieceTokenizer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/tokenize/wordpiece_alphabet.h"
#include "data/tokenize/wordpiece_vocabulary.h"

namespace lockstep {

// Returns how many ids to keep of two texts of `first` and `second` ids if there is room for
// `most`: the longer text is cut first, and two long texts get half each.
struct KeptIds {
  std::size_t first = 0, second = 0;
};
KeptIds keep_longest_first(std::size_t first, std::size_t second, std::size_t most);

struct WordPieceConfig {
  bool lowercase = true;                             // as "uncased" vocabularies require
  std::optional<bool> strip_accents = std::nullopt;  // absent: same as `lowercase`
  bool chinese_apart = true;                         // each Chinese character is a word
};

// The input of BERT: [CLS] first [SEP], or [CLS] first [SEP] second [SEP].
struct WordPieceInput {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // 0 for the first text with [CLS] and its [SEP], 1 for the second
};

// Immutable after construction, hence thread-safe. Takes some 5 MB of memory for 30,000 pieces.
class WordPiece {
 public:
  // Loads a vocab.txt with one piece per line; line n (from 0) has id n. Throws DataError for a
  // file that is not UTF-8 or lacks [UNK], [CLS] or [SEP].
  static WordPiece load(const fs::path& path, const WordPieceConfig& config = {});
  // Returns the pieces of a file without checks except for UTF-8.
  static std::vector<std::string> read_pieces(const fs::path& path);
  WordPiece(const std::vector<std::string>& pieces, const WordPieceConfig& config,
            const std::string& name = "vocabulary");

  // Appends the ids of a text, without [CLS] and [SEP]. `text` must be valid UTF-8. Stops when
  // `ids` has `limit` or more ids. A word longer than 100 characters becomes [UNK]; special pieces
  // in the text, such as "[SEP]", keep their meaning.
  void encode(std::string_view text, std::vector<int32_t>& ids, std::size_t limit = SIZE_MAX) const;

  // Overwrites `out` with the input for one text or two. If it exceeds `max_length` ids, special
  // ones included, ids at the end of the longer text are cut first. Returns true if it was cut.
  // REQUIRES: max_length > 3.
  bool encode_input(std::string_view first, WordPieceInput& out,
                    std::size_t max_length = SIZE_MAX) const;
  bool encode_input(std::string_view first, std::string_view second, WordPieceInput& out,
                    std::size_t max_length = SIZE_MAX) const;

  // Returns the text of ids: omits special pieces, joins at "##", and writes no blank before . , ?
  // ! and the like. REQUIRES: every id is in [0, vocab_size()).
  std::string decode(std::span<const int32_t> ids) const;

  int32_t vocab_size() const { return static_cast<int32_t>(vocabulary_.size()); }
  const std::string& piece(int32_t id) const { return vocabulary_.piece(id); }
  std::optional<int32_t> find(std::string_view piece) const { return vocabulary_.find(piece); }
  int32_t unk_id() const { return unk_; }
  int32_t cls_id() const { return cls_; }
  int32_t sep_id() const { return sep_; }
  std::optional<int32_t> pad_id() const { return find("[PAD]"); }
  std::optional<int32_t> mask_id() const { return find("[MASK]"); }

 private:
  class Encoder;  // one call of encode()

  // How the characters of the basic plane are normalized.
  struct BasicPlane {
    // Its kind and code point, or an index in `several` if it becomes several characters.
    struct Entry {
      CharacterKind kind = CharacterKind::kRemoved;
      bool several = false;
      char16_t value = 0;
    };
    std::vector<Entry> entries;  // by code point, below 65536
    std::vector<std::vector<NormalCharacter>> several;
  };

  static BasicPlane make_plane(const AlphabetOptions& options);
  // Returns the one of the process for these options, made at the first call. Any thread may call.
  static const BasicPlane& plane_of(const AlphabetOptions& options);
  void fill_ascii();
  std::optional<int32_t> special_at(std::string_view text) const;

  WordPieceVocabulary vocabulary_;
  AlphabetOptions alphabet_;
  const BasicPlane* plane_ = nullptr;
  std::array<char, 128> ascii_letter_{};    // the normalized letter or digit; 0 for other bytes
  std::array<int32_t, 128> ascii_alone_{};  // the id of a punctuation mark; -1 for other bytes
  std::vector<int32_t> specials_;           // ids of the special pieces that exist
  int32_t unk_ = 0, cls_ = 0, sep_ = 0;
};

}  // namespace lockstep
