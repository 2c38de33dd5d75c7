// The folder of a translation model that lockstep-translate reads (docs/formats.md, "Edge model"):
// model.edge, the weights as they are packed, behind a header of text; and source.spm, the
// SentencePiece model. The weights are mapped, not read: the layout is that of the kernels of every
// instruction set (kernels/packed_product.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "decode/beam_search.h"
#include "decode/packed_transformer.h"

namespace lockstep {

inline constexpr const char* kEdgeWeights = "model.edge";
inline constexpr const char* kEdgeSubword = "source.spm";

// What the header says besides the checksums. The keys of the file have these names.
struct EdgeHeader {
  std::string precision = "fp32";
  int64_t d_model = 0, heads = 0;
  int64_t encoder_layers = 0, decoder_layers = 0, feed_forward = 0;
  int64_t pieces = 0;
  std::string norm = "pre";
  double norm_epsilon = 1e-5;
  std::string activation = "relu", positions = "interleaved", start = "bos";
  SpecialIds special;
  BeamOptions decoding;
};

// Writes both files; the weights last, so that a folder that has them is complete. The weights of
// `model` are written as they are, so its format is that of header.precision; its embedding is not
// written: the program reads that of model.output. Returns the bytes written. Throws MachineError
// when the disk refuses.
int64_t write_edge_folder(const fs::path& folder, const EdgeHeader& header,
                          const PackedTransformer& model, const std::string& subword);

// An opened folder. Immutable, hence thread-safe.
class EdgeFolder {
 public:
  // Maps both files. Throws DataError when one is missing, cut short, damaged, of another version
  // or no such file. The checksum of the weights is left to check_weights(): it reads all of them.
  explicit EdgeFolder(const fs::path& folder);
  EdgeFolder(const EdgeFolder&) = delete;
  EdgeFolder& operator=(const EdgeFolder&) = delete;

  void check_weights() const;  // throws DataError

  const EdgeHeader& header() const { return header_; }
  const PackedTransformer& model() const { return model_; }  // refers to the mapped file
  std::string_view subword() const;                          // the content of source.spm
  bool source_begins_with_bos() const { return header_.start == "zero"; }

 private:
  fs::path folder_;
  MappedFile weights_, subword_;
  EdgeHeader header_;
  uint32_t weights_crc32c_ = 0;
  PackedTransformer model_;
};

// Sets the key of [decoding] of that name (beam_size, length_penalty and so on; tasks/translator.h)
// and returns true; false when it is none that beam search has. Throws ConfigError for a value that
// it cannot have.
bool set_decoding_key(BeamOptions& options, std::string_view key, std::string_view value);

}  // namespace lockstep
