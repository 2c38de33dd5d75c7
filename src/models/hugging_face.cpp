#include "models/hugging_face.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "formats/tensor_file.h"
#include "models/transformer_places.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using torch::Tensor;

constexpr int64_t kPositions = 1024;   // tokens that an exported model can read and write
constexpr double kNeverLogit = -1e4;   // logit of an id that we lack: e^-10000 is 0 in fp32
constexpr double kNormEpsilon = 1e-5;  // of every layer norm in transformers

// Tensors to be written to a file; keeps them alive, in the type in which they are written.
class FileTensors {
 public:
  explicit FileTensors(std::string precision) : precision_(std::move(precision)) {}

  void add(const std::string& name, const Tensor& value) {
    const bool matrix = value.dim() == 2 && name.find("embed_positions") == std::string::npos &&
                        name != "final_logits_bias";
    if (!matrix || precision_ == "fp32") return keep(name, value.contiguous(), DType::kF32);
    if (precision_ == "bf16") return keep(name, value.to(at::kBFloat16), DType::kBF16);
    // Symmetric, with a scale for each row: the largest magnitude becomes 127.
    const Tensor scale = value.abs().amax(1).div(127).clamp_min(1e-30);
    keep(name + ".int8", value.div(scale.unsqueeze(1)).round_().to(at::kChar), DType::kI8);
    keep(name + ".scale", scale, DType::kF32);
  }
  const std::vector<TensorEntry>& entries() const { return entries_; }

 private:
  void keep(const std::string& name, const Tensor& value, DType dtype) {
    tensors_.push_back(value);
    const auto* data = static_cast<const std::byte*>(value.const_data_ptr());
    entries_.push_back({name, dtype, value.sizes().vec(), {data, value.nbytes()}});
  }

  std::string precision_;
  std::vector<Tensor> tensors_;
  std::vector<TensorEntry> entries_;
};

// Returns a tensor of a file as fp32 and checks its shape.
Tensor as_fp32(const TensorFile& file, const std::string& name, const std::vector<int64_t>& shape) {
  auto load = [&](const TensorEntry& entry, DType dtype, at::ScalarType type,
                  const std::vector<int64_t>& expected) {
    if (entry.dtype != dtype || entry.shape != expected) {
      throw DataError("{}: tensor {}: expected {} {}, found {} {}; another architecture?",
                      file.path().string(), entry.name, dtype_name(dtype), shape_text(expected),
                      dtype_name(entry.dtype), shape_text(entry.shape));
    }
    Tensor out = torch::empty(expected, type);
    std::copy(entry.data.begin(), entry.data.end(), static_cast<std::byte*>(out.data_ptr()));
    return out.to(at::kFloat);
  };
  if (const TensorEntry* quantised = file.find(name + ".int8")) {
    const Tensor scale = load(file.get(name + ".scale"), DType::kF32, at::kFloat, {shape[0]});
    return load(*quantised, DType::kI8, at::kChar, shape).mul_(scale.unsqueeze(1));
  }
  const TensorEntry& entry = file.get(name);
  if (entry.dtype == DType::kBF16) return load(entry, DType::kBF16, at::kBFloat16, shape);
  return load(entry, DType::kF32, at::kFloat, shape);
}

// Returns the size of our vocabulary. Where theirs is larger, <pad> is the first id behind it.
int64_t own_vocabulary(const ExportedIds& ids) {
  return ids.pad == ids.bos ? ids.vocabulary : ids.pad;
}

// Returns the factor of the residual stream that makes norms with the epsilon of transformers
// compute what ours do.
double residual_scale(const TransformerConfig& config) {
  const bool same = std::abs(config.norm_epsilon - kNormEpsilon) <= 1e-12;
  return same ? 1 : std::sqrt(kNormEpsilon / config.norm_epsilon);
}

// Returns the factor of one of their tensors. What adds to the residual stream is scaled with it;
// the decoder's last norm takes the table's factor back, for the logits.
double scale_of(const std::string& theirs, double residual) {
  const bool adds = theirs.find(".out_proj.") != std::string::npos ||
                    theirs.find(".fc2.") != std::string::npos || theirs == "model.shared.weight" ||
                    theirs.find(".embed_positions.") != std::string::npos;
  if (adds) return residual;
  return theirs.starts_with("model.decoder.layer_norm.") ? 1 / residual : 1;
}

const char* torch_type(const std::string& precision) {
  return precision == "bf16" ? "bfloat16" : "float32";
}

}  // namespace

ExportedIds exported_ids(const TransformerConfig& config, int64_t vocabulary, int64_t bos,
                         int64_t eos) {
  if (config.starts_with_zero()) {
    return {vocabulary + 1 + kLanguageCodes, vocabulary, eos, vocabulary, bos, vocabulary + 1};
  }
  if (config.pre_norm()) return {vocabulary, bos, eos, bos, bos};
  return {vocabulary + 1, vocabulary, eos, vocabulary, bos};
}

void check_exportable(const TransformerConfig& config) {
  if (config.pre_norm()) return;
  if (config.starts_with_zero()) {
    throw ConfigError(
        "model.start = zero with model.norm = post cannot be exported: Marian's <pad> must be the "
        "last id; expected model.norm = pre, or model.start = bos");
  }
  if (residual_scale(config) != 1) {
    throw ConfigError(
        "model.norm_epsilon = {:g} with model.norm = post cannot be exported: the layer norms of "
        "transformers have {:g}",
        config.norm_epsilon, kNormEpsilon);
  }
}

void write_hugging_face_weights(const fs::path& path, const Transformer& model,
                                const Parameters& parameters, const ExportedIds& ids,
                                const std::string& precision) {
  torch::NoGradGuard no_grad;
  check_exportable(model.config());
  const int64_t d = model.config().d_model;
  FileTensors out(precision);
  const Tensor table = model.table().value.cpu();
  const Tensor positions = model.positions(kPositions).narrow(0, 0, kPositions).cpu().contiguous();
  Tensor first = positions.clone();
  const double residual = residual_scale(model.config());
  auto add = [&](const std::string& name, const Tensor& value) {
    const double scale = scale_of(name, residual);
    out.add(name, scale == 1 ? value : value * scale);
  };
  if (ids.vocabulary == table.size(0)) {
    add("model.shared.weight", table);
  } else {
    Tensor behind = torch::zeros({ids.vocabulary - table.size(0), d});
    Tensor bias = torch::zeros({1, ids.vocabulary});
    bias.narrow(1, table.size(0), behind.size(0)).fill_(kNeverLogit);
    if (ids.starts_with_zero()) {
      behind[ids.prefix - table.size(0)] = table[ids.bos];
    } else {
      first[0] += table[ids.bos] * std::sqrt(static_cast<double>(d));
    }
    add("model.shared.weight", torch::cat({table, behind}));
    out.add("final_logits_bias", bias);
  }
  if (precision != "int8") {  // lockstep computes them
    add("model.encoder.embed_positions.weight", positions);
    add("model.decoder.embed_positions.weight", first);
  }
  for (const WeightPlace& place : transformer_places(parameters)) {
    const Parameter* ours = parameters.find(place.ours);
    add(place.theirs, ours == nullptr ? torch::zeros({place.rows})
                                      : ours->value.cpu().narrow(0, place.begin, place.rows));
  }
  write_tensor_file(path, out.entries(), {{"format", "pt"}, {"lockstep", LOCKSTEP_VERSION}});
}

Json hugging_face_config(const TransformerConfig& config, const ExportedIds& ids,
                         const std::string& precision) {
  check_exportable(config);
  const bool pre = config.pre_norm();
  // transformers must not mistake an int8 file for one whose tensors are missing.
  const char* type = precision == "int8" ? "lockstep-int8" : pre ? "pegasus" : "marian";
  Json json = {{"architectures", {pre ? "PegasusForConditionalGeneration" : "MarianMTModel"}},
               {"model_type", type},
               {"torch_dtype", torch_type(precision)},
               {"vocab_size", ids.vocabulary},
               {"d_model", config.d_model},
               {"encoder_layers", config.encoder_layers},
               {"decoder_layers", config.decoder_layers},
               {"num_hidden_layers", config.encoder_layers},
               {"encoder_attention_heads", config.heads},
               {"decoder_attention_heads", config.heads},
               {"encoder_ffn_dim", config.feed_forward},
               {"decoder_ffn_dim", config.feed_forward},
               {"activation_function", config.activation},
               {"dropout", config.dropout},
               {"attention_dropout", config.attention_dropout},
               {"activation_dropout", config.relu_dropout},
               {"scale_embedding", true},
               {"normalize_before", pre},
               {"normalize_embedding", false},
               {"max_position_embeddings", kPositions},
               {"is_encoder_decoder", true},
               {"tie_word_embeddings", true},
               {"share_encoder_decoder_embeddings", true},
               {"pad_token_id", ids.pad},
               {"bos_token_id", ids.start},
               {"eos_token_id", ids.eos},
               {"decoder_start_token_id", ids.start},
               {"forced_eos_token_id", nullptr}};
  if (ids.starts_with_zero()) json["forced_bos_token_id"] = ids.bos;
  if (!pre) json["decoder_vocab_size"] = ids.vocabulary;
  // Holds what the keys above do not say; only lockstep reads it.
  json["lockstep"] = {{"version", LOCKSTEP_VERSION},
                      {"precision", precision},
                      {"vocabulary", own_vocabulary(ids)},
                      {"norm", config.norm},
                      {"norm_epsilon", config.norm_epsilon},
                      {"positions", config.positions},
                      {"start", config.start},
                      {"vocabulary_multiple", config.vocabulary_multiple}};
  return json;
}

bool is_hugging_face_folder(const fs::path& folder) { return fs::exists(folder / "config.json"); }

HuggingFaceModel read_hugging_face_config(const fs::path& folder) {
  const fs::path path = fs::is_directory(folder) ? folder / "config.json" : folder;
  const std::string text = read_file(path);
  HuggingFaceModel out;
  try {
    const Json json = Json::parse(text);
    if (!json.contains("lockstep")) {
      DataError error("{}: not a model that lockstep exported (no key \"lockstep\")",
                      path.string());
      error.set_advice("lockstep export RUN --format huggingface --out FOLDER");
      throw error;
    }
    const Json& own = json.at("lockstep");
    TransformerConfig& config = out.config;
    config.d_model = json.at("d_model");
    config.heads = json.at("encoder_attention_heads");
    config.encoder_layers = json.at("encoder_layers");
    config.decoder_layers = json.at("decoder_layers");
    config.feed_forward = json.at("encoder_ffn_dim");
    config.activation = json.at("activation_function");
    config.dropout = json.at("dropout");
    config.attention_dropout = json.at("attention_dropout");
    config.relu_dropout = json.at("activation_dropout");
    config.norm = own.at("norm");
    config.positions = own.at("positions");
    // Exports of before these could differ have neither.
    config.norm_epsilon = own.value("norm_epsilon", kNormEpsilon);
    config.start = own.value("start", std::string("bos"));
    config.vocabulary_multiple = own.at("vocabulary_multiple");
    out.vocabulary = own.at("vocabulary");
    out.precision = own.at("precision");
    out.beam_size = own.at("decoding").at("beam_size");
    out.length_penalty = own.at("decoding").at("length_penalty");
  } catch (const nlohmann::json::exception& problem) {
    DataError error("{}: damaged", path.string());
    error.set_cause(problem.what());
    throw error;
  }
  return out;
}

void read_hugging_face_weights(const fs::path& folder, Parameters& parameters) {
  torch::NoGradGuard no_grad;
  const TensorFile file(folder / "model.safetensors");
  const Parameter& table = *parameters.find("embedding.weight");
  std::vector<int64_t> table_shape = table.shape;
  // Rows behind ours have a bias.
  if (const TensorEntry* bias = file.find("final_logits_bias")) table_shape[0] = bias->shape.at(1);
  const double residual = residual_scale(read_hugging_face_config(folder).config);
  auto load = [&](const std::string& name, const std::vector<int64_t>& shape) {
    const Tensor value = as_fp32(file, name, shape);
    const double scale = scale_of(name, residual);
    return scale == 1 ? value : value / scale;
  };
  table.value.detach().copy_(load("model.shared.weight", table_shape).narrow(0, 0, table.shape[0]));
  for (const WeightPlace& place : transformer_places(parameters)) {
    const Parameter& ours = *parameters.find(place.ours);
    ours.value.detach().narrow(0, place.begin, place.rows).copy_(load(place.theirs, place.shape));
  }
  parameters.refresh_low();
}

}  // namespace lockstep
