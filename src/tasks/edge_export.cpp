#include "tasks/edge_export.h"

#include "base/error.h"
#include "edge/edge_file.h"
#include "edge/edge_vocabulary.h"
#include "models/packing.h"
#include "tasks/translator.h"

namespace lockstep {
namespace {

EdgeHeader header_of(const EdgeExport& what) {
  const TransformerConfig& config = what.model.config();
  EdgeHeader header;
  header.precision = what.precision;
  header.d_model = config.d_model;
  header.heads = config.heads;
  header.encoder_layers = config.encoder_layers;
  header.decoder_layers = config.decoder_layers;
  header.feed_forward = config.feed_forward;
  header.pieces = what.model.pieces();
  const PublishedVariant& variant = config.variant;
  if (variant.own_output_table) header.decoder_rows = what.model.table().shape[0];
  if (variant.own_source_table) header.encoder_rows = what.model.source_table().shape[0];
  header.first_position = variant.first_position;
  header.embeddings = variant.scale_embedding ? "scaled" : "plain";
  header.norm = config.norm;
  header.norm_epsilon = config.norm_epsilon;
  header.activation = config.activation;
  header.positions = config.positions;
  header.start = config.start;
  header.vocabulary = vocabulary_word(what.vocabulary.kind());
  header.special = what.special;
  header.decoding = what.decoding;
  return header;
}

}  // namespace

int64_t export_edge(const fs::path& folder, const EdgeExport& what) {
  for (const char* name : {kEdgeWeights, "config.json"}) {
    if (!fs::exists(folder / name)) continue;
    ConfigError error("{}: already holds a model ({})", folder.string(), name);
    error.set_advice(fmt::format("--out {}-2, or remove it", folder.string()));
    throw error;
  }
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw MachineError("{}: cannot be created: {}", folder.string(), failed.message());
  const WeightFormat format = weight_format(what.precision);
  PackedTransformer packed = pack_transformer(what.model, format, decoding_start(what.special));
  const PublishedVariant& variant = what.model.config().variant;
  if (variant.own_output_table) packed.decoder_rows = pack_table(what.model.table(), format);
  if (variant.own_source_table) packed.encoder_rows = pack_table(what.model.source_table(), format);
  return write_edge_folder(folder, header_of(what), packed, what.vocabulary);
}

}  // namespace lockstep
