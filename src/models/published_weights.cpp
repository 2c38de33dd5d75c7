// Implements the weights of models/published_model.h.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "formats/weight_files.h"
#include "models/published_model.h"
#include "models/transformer_places.h"
#include "models/weight_transfer.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using torch::Tensor;

constexpr const char* kShared = "model.shared.weight";
constexpr const char* kSourceTable = "model.encoder.embed_tokens.weight";
constexpr const char* kTargetTable = "model.decoder.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";
constexpr const char* kOutputBias = "final_logits_bias";
// Positions are computed; a file that holds others than these would be misread. Half precision
// stores them with an error of 5e-4.
constexpr double kPositionsTolerance = 2e-3;

// A tensor of ours and the names under which transformers stores it; the first is written.
struct TablePlace {
  std::vector<std::string> theirs;
  std::string ours;
};

std::vector<TablePlace> table_places(const PublishedModel& model) {
  const PublishedVariant& variant = model.config.variant;
  std::vector<TablePlace> out;
  if (variant.own_source_table) {
    out.push_back({{kSourceTable}, "source_embedding.weight"});
    out.push_back({{kTargetTable}, "embedding.weight"});
  } else {
    out.push_back({{kShared, kSourceTable, kTargetTable}, "embedding.weight"});
  }
  if (variant.own_output_table) {
    out.push_back({{kHead}, "output.weight"});
  } else {
    out.back().theirs.push_back(kHead);  // tied to the decoder's table
  }
  return out;
}

class PublishedReader {
 public:
  PublishedReader(const WeightFiles& files, const PublishedModel& model, Parameters& parameters)
      : files_(files), model_(model), parameters_(parameters) {}

  std::vector<std::string> run() {
    for (const TablePlace& place : table_places(model_)) {
      const OwnTensor own = own_tensor(parameters_, place.ours);
      std::vector<std::string> names = place.theirs;
      plan(names, own.value, own.shape);
    }
    for (const WeightPlace& place : transformer_places(parameters_)) {
      const OwnTensor own = own_tensor(parameters_, place.ours);
      plan({place.theirs}, own.value.narrow(0, place.begin, place.rows), place.shape);
    }
    if (model_.config.variant.output_bias) plan_bias();
    for (const char* side : {"encoder", "decoder"}) check_positions(side);
    note_unused();
    for (const auto& [to, from] : copies_) to.copy_(from.view(to.sizes()));
    return std::move(notes_);
  }

 private:
  // A file of the network without its head has names without "model.".
  const TensorEntry* find(const std::string& name) {
    known_.insert(name);
    if (const TensorEntry* entry = files_.find(name)) return entry;
    if (!name.starts_with("model.")) return nullptr;
    known_.insert(name.substr(6));
    return files_.find(name.substr(6));
  }

  void plan(const std::vector<std::string>& names, const Tensor& to,
            const std::vector<int64_t>& shape) {
    const TensorEntry* found = nullptr;
    for (const std::string& name : names) {
      const TensorEntry* entry = find(name);
      if (found == nullptr) found = entry;
    }
    if (found == nullptr) refuse(fmt::format("{} is not there", names.front()));
    if (found->shape != shape) {
      refuse(fmt::format("{} is {}, expected {}", found->name, shape_text(found->shape),
                         shape_text(shape)));
    }
    copies_.emplace_back(to, as_fp32(files_.path(), *found));
  }

  void plan_bias() {
    const OwnTensor own = own_tensor(parameters_, "output.bias");
    const int64_t rows = own.shape[0];
    if (find(kOutputBias) == nullptr) {
      notes_.push_back("no final_logits_bias there: zeros");
      copies_.emplace_back(own.value, torch::zeros({rows}));
    } else {
      plan({kOutputBias}, own.value, {1, rows});
    }
  }

  void check_positions(const std::string& side) {
    const TensorEntry* entry = find(fmt::format("model.{}.embed_positions.weight", side));
    if (entry == nullptr) return;
    const TransformerConfig& c = model_.config;
    if (entry->shape.size() != 2 || entry->shape[1] != c.d_model) {
      refuse(fmt::format("{} is {}, expected [positions, {}]", entry->name,
                         shape_text(entry->shape), c.d_model));
    }
    const Tensor theirs = as_fp32(files_.path(), *entry);
    const Tensor ours = computed_positions(c, theirs.size(0));
    const double most = (theirs - ours).abs().max().item<double>();
    if (!(most <= kPositionsTolerance)) {
      refuse(fmt::format("{} differs by {:.3g} from the sines and cosines of this class",
                         entry->name, most));
    }
  }

  // Refuses layers of another depth, which must not go unnoticed.
  void note_unused() {
    std::vector<std::string> unused;
    for (const TensorEntry& entry : files_.entries()) {
      if (known_.contains(entry.name)) continue;
      const bool inside = entry.name.find("encoder.layer") != std::string::npos ||
                          entry.name.find("decoder.layer") != std::string::npos;
      if (inside) refuse(fmt::format("{} has no place in this network", entry.name));
      if (entry.name.find("embed_positions") == std::string::npos) unused.push_back(entry.name);
    }
    note_unused_tensors(unused, notes_);
  }

  [[noreturn]] void refuse(const std::string& difference) const {
    refuse_weights(files_.path(), difference);
  }

  const WeightFiles& files_;
  const PublishedModel& model_;
  Parameters& parameters_;
  std::set<std::string> known_;
  std::vector<std::pair<Tensor, Tensor>> copies_;  // to, from
  std::vector<std::string> notes_;
};

}  // namespace

std::vector<std::string> read_published_weights(const fs::path& folder, const PublishedModel& model,
                                                Parameters& parameters) {
  torch::NoGradGuard no_grad;
  const fs::path file = find_weight_file(folder);
  if (file.empty()) {
    throw DataError("{}: neither model.safetensors nor pytorch_model.bin", folder.string());
  }
  const WeightFiles files(file);
  std::vector<std::string> notes = PublishedReader(files, model, parameters).run();
  parameters.refresh_low();
  return notes;
}

int64_t write_published_model(const fs::path& folder, const PublishedModel& model,
                              const Parameters& parameters, const std::string& precision) {
  torch::NoGradGuard no_grad;
  WeightWriter weights(precision);
  for (const TablePlace& place : table_places(model)) {
    const OwnTensor own = own_tensor(parameters, place.ours);
    weights.add(place.theirs.front(), own.value, own.shape);
  }
  for (const WeightPlace& place : transformer_places(parameters)) {
    const OwnTensor own = own_tensor(parameters, place.ours);
    weights.add(place.theirs, own.value.narrow(0, place.begin, place.rows), place.shape);
  }
  if (model.config.variant.output_bias) {
    const OwnTensor own = own_tensor(parameters, "output.bias");
    weights.add_exact(kOutputBias, own.value, {1, own.shape[0]});
  }
  weights.write(folder / "model.safetensors");
  Json json = Json::parse(model.config_json);
  for (const char* key : {"torch_dtype", "dtype"}) {
    if (json.contains(key)) json[key] = precision == "bf16" ? "bfloat16" : "float32";
  }
  write_file(folder / "config.json", json.dump(2) + "\n");
  return weights.bytes();
}

}  // namespace lockstep
