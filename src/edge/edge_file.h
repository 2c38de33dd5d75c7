// The folder of a translation model that lockstep-translate reads (docs/formats.md, "Edge model"):
// model.edge, the weights as they are packed, behind a header of text; source.spm, the
// SentencePiece model; and of a published model vocabulary.pieces, its ids, and where the target
// has a SentencePiece model of its own, target.spm. The weights are mapped, not read: the layout is
// that of the kernels of every instruction set (kernels/packed_product.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/tokenize/translation_tokenizer.h"
#include "decode/beam_search.h"
#include "decode/packed_transformer.h"

namespace lockstep {

inline constexpr int64_t kEdgeVersion = 2;  // of the format
inline constexpr const char* kEdgeWeights = "model.edge";
inline constexpr const char* kEdgeSubword = "source.spm";
inline constexpr const char* kEdgeTarget = "target.spm";
inline constexpr const char* kEdgePieces = "vocabulary.pieces";

// What the header says besides the checksums. The keys of the file have these names.
struct EdgeHeader {
  std::string precision = "fp32";
  int64_t d_model = 0, heads = 0;
  int64_t encoder_layers = 0, decoder_layers = 0, feed_forward = 0;
  int64_t pieces = 0;
  std::string norm = "pre";
  double norm_epsilon = 1e-5;
  std::string activation = "relu", positions = "interleaved", embeddings = "scaled";
  int64_t first_position = 0;
  // Rows of the tables that the decoder and the encoder have for themselves; 0: they embed with the
  // rows of the output.
  int64_t decoder_rows = 0, encoder_rows = 0;
  std::string start = "bos", vocabulary = "own";
  SpecialIds special;
  BeamOptions decoding;
};

// Writes all files; the weights last, so that a folder that has them is complete. The weights of
// `model` are written as they are, so its format is that of header.precision; of its embeddings
// only the packed rows are written. Returns the bytes written. Throws ConfigError when the header
// has too many ids, DataError for a piece with a line end, MachineError when the disk refuses.
int64_t write_edge_folder(const fs::path& folder, const EdgeHeader& header,
                          const PackedTransformer& model, const TranslationTokenizer& vocabulary);

// An opened folder. Immutable, hence thread-safe.
class EdgeFolder {
 public:
  // Maps all files. Throws DataError when one is missing, cut short, damaged, of another version
  // or no such file. The checksum of the weights is left to check_weights(): it reads all of them.
  explicit EdgeFolder(const fs::path& folder);
  EdgeFolder(const EdgeFolder&) = delete;
  EdgeFolder& operator=(const EdgeFolder&) = delete;

  void check_weights() const;  // throws DataError

  const EdgeHeader& header() const { return header_; }
  const PackedTransformer& model() const { return model_; }  // refers to the mapped file
  // Reads the vocabulary. Throws DataError when a file is damaged.
  TranslationTokenizer tokenizer() const;
  // What every source begins with.
  std::vector<int32_t> source_prefix() const;

 private:
  fs::path folder_;
  MappedFile weights_;
  EdgeHeader header_;
  std::string subword_, target_, pieces_;  // contents; "" for none
  uint32_t weights_crc32c_ = 0;
  PackedTransformer model_;
};

// Sets the key of [decoding] of that name (beam_size, length_penalty and so on; tasks/translator.h)
// and returns true; false when it is none that beam search has. Throws ConfigError for a value that
// it cannot have.
bool set_decoding_key(BeamOptions& options, std::string_view key, std::string_view value);

}  // namespace lockstep
