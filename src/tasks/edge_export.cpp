#include "tasks/edge_export.h"

#include "base/error.h"
#include "edge/edge_file.h"
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
  header.norm = config.norm;
  header.norm_epsilon = config.norm_epsilon;
  header.activation = config.activation;
  header.positions = config.positions;
  header.start = config.start;
  header.special = special_ids(what.subword);
  header.decoding = what.decoding;
  return header;
}

}  // namespace

int64_t export_edge(const fs::path& folder, const EdgeExport& what) {
  const TransformerConfig& config = what.model.config();
  if (config.activation != "relu" && config.activation != "gelu") {
    throw ConfigError("--format edge: model.activation: expected relu or gelu, the model has {}",
                      config.activation);
  }
  if (config.positions != "interleaved" && config.positions != "halves") {
    throw ConfigError(
        "--format edge: model.positions: expected interleaved or halves, the model has {}",
        config.positions);
  }
  for (const char* name : {kEdgeWeights, "config.json"}) {
    if (!fs::exists(folder / name)) continue;
    ConfigError error("{}: already holds a model ({})", folder.string(), name);
    error.set_advice(fmt::format("--out {}-2, or remove it", folder.string()));
    throw error;
  }
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw MachineError("{}: cannot be created: {}", folder.string(), failed.message());
  const PackedTransformer packed = pack_transformer(what.model, weight_format(what.precision));
  return write_edge_folder(folder, header_of(what), packed, what.subword.serialized());
}

}  // namespace lockstep
