#include "models/bert_weights.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "formats/weight_files.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using torch::Tensor;

constexpr const char* kQkv = ".attention.self.qkv.";
constexpr const char* kMarker = "embeddings.word_embeddings.weight";

fs::path config_file(const fs::path& folder) {
  return fs::is_directory(folder) ? folder / "config.json" : folder;
}

// Refuses settings of a BERT whose values mean a network that lockstep does not compute.
void check_meaning(const Json& json, const fs::path& path) {
  auto expect = [&](const char* key, const Json& expected) {
    if (!json.contains(key) || json.at(key).is_null() || json.at(key) == expected) return;
    throw DataError("{}: {} is {}, which lockstep does not compute; expected {}", path.string(),
                    key, json.at(key).dump(), expected.dump());
  };
  expect("model_type", "bert");
  expect("hidden_act", "gelu");
  expect("position_embedding_type", "absolute");
  expect("is_decoder", false);
  expect("add_cross_attention", false);
}

int64_t size_at(const Json& json, const char* key, int64_t fallback, const fs::path& path) {
  const auto value = json.value(key, fallback);
  if (value < 1) {
    throw DataError("{}: {} is {}; expected at least 1", path.string(), key, value);
  }
  return value;
}

double share_at(const Json& json, const char* key, double fallback, const fs::path& path) {
  const auto value = json.value(key, fallback);
  if (!(value >= 0 && value < 1)) {
    throw DataError("{}: {} is {}; expected at least 0 and below 1", path.string(), key, value);
  }
  return value;
}

std::vector<std::string> labels_of(const Json& json, const fs::path& path) {
  std::vector<std::string> out;
  if (!json.contains("id2label")) {
    const int64_t count = size_at(json, "num_labels", 2, path);
    for (int64_t i = 0; i < count; ++i) out.push_back(fmt::format("LABEL_{}", i));
    return out;
  }
  const Json& names = json.at("id2label");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string id = std::to_string(i);
    if (!names.contains(id)) throw DataError("{}: id2label lacks label {}", path.string(), id);
    out.push_back(names.at(id).get<std::string>());
  }
  if (out.empty()) throw DataError("{}: id2label is empty", path.string());
  return out;
}

BertConfig config_of(const Json& json, const fs::path& path) {
  check_meaning(json, path);
  BertConfig out;
  BertShape& s = out.shape;
  auto size = [&](const char* key, int64_t& value) { value = size_at(json, key, value, path); };
  size("vocab_size", s.vocab_size);
  size("hidden_size", s.hidden_size);
  size("num_hidden_layers", s.num_hidden_layers);
  size("num_attention_heads", s.num_attention_heads);
  size("intermediate_size", s.intermediate_size);
  size("max_position_embeddings", s.max_position_embeddings);
  size("type_vocab_size", s.type_vocab_size);
  s.layer_norm_eps = json.value("layer_norm_eps", s.layer_norm_eps);
  s.initializer_range = json.value("initializer_range", s.initializer_range);
  s.hidden_dropout_prob = share_at(json, "hidden_dropout_prob", s.hidden_dropout_prob, path);
  s.attention_probs_dropout_prob =
      share_at(json, "attention_probs_dropout_prob", s.attention_probs_dropout_prob, path);
  if (json.contains("classifier_dropout") && !json.at("classifier_dropout").is_null()) {
    s.classifier_dropout = share_at(json, "classifier_dropout", 0, path);
  }
  out.labels = labels_of(json, path);
  s.num_labels = std::ssize(out.labels);
  const Json problem = json.value("problem_type", Json());
  if (problem == "multi_label_classification") {
    throw DataError("{}: problem_type is multi_label_classification; expected one label a text",
                    path.string());
  }
  out.regression = problem.is_null() ? s.num_labels == 1 : problem == "regression";
  if (out.regression && s.num_labels != 1) {
    throw DataError("{}: regression with {} labels; expected 1", path.string(), s.num_labels);
  }
  const std::string wrong = check_shape(s);
  if (!wrong.empty()) throw DataError("{}: {}", path.string(), wrong);
  return out;
}

// The tensors of a file under the names of bert_places().
struct NamedWeights {
  std::map<std::string, const TensorEntry*> tensors;
  std::vector<std::string> order;  // the names in the order of the file
};

// Returns what precedes "embeddings.word_embeddings.weight" in the file's names; nothing when that
// is absent.
std::optional<std::string> prefix_of(const std::vector<TensorEntry>& entries) {
  for (const TensorEntry& entry : entries) {
    if (!entry.name.ends_with(kMarker)) continue;
    const std::string prefix =
        entry.name.substr(0, entry.name.size() - std::string(kMarker).size());
    if (prefix.empty() || prefix.back() == '.') return prefix;
  }
  return std::nullopt;
}

// Replaces TensorFlow's names of a norm's weight and bias, which BERTs of 2018 and 2019 have.
std::string modern(std::string name) {
  for (const auto& [old, now] : {std::pair<std::string, std::string>{".gamma", ".weight"},
                                 std::pair<std::string, std::string>{".beta", ".bias"}}) {
    if (name.ends_with(old)) return name.substr(0, name.size() - old.size()) + now;
  }
  return name;
}

NamedWeights name_weights(const WeightFiles& files) {
  const std::optional<std::string> prefix = prefix_of(files.entries());
  if (!prefix) {
    DataError error("{}: the weights of no BERT: no {}", files.path().string(), kMarker);
    if (!files.entries().empty()) error.set_cause("it holds " + files.entries().front().name);
    throw error;
  }
  // "module.bert." -> outer "module."; "bert.", which a model without a head lacks,
  // is added to its names.
  const bool has_base = *prefix == "bert." || prefix->ends_with(".bert.");
  const std::string outer = has_base ? prefix->substr(0, prefix->size() - 5) : *prefix;
  NamedWeights out;
  for (const TensorEntry& entry : files.entries()) {
    std::string name = modern(entry.name);
    if (name.starts_with(outer)) name = name.substr(outer.size());
    const bool of_base = name.starts_with("embeddings.") || name.starts_with("encoder.") ||
                         name.starts_with("pooler.");
    if (!has_base && of_base) name = "bert." + name;
    out.order.push_back(name);
    out.tensors[name] = &entry;
  }
  return out;
}

// Decides what is copied where before anything is copied.
class BertReader {
 public:
  BertReader(const WeightFiles& files, const Parameters& parameters)
      : files_(files), parameters_(parameters), named_(name_weights(files)) {
    read_.file = files.path();
  }

  BertWeightsRead run() {
    std::set<std::string> known;
    for (const WeightPlace& place : bert_places(parameters_)) {
      known.insert(place.theirs);
      plan(place);
    }
    note_unused(known);
    for (const Copy& copy : copies_) copy.to.copy_(copy.from.view(copy.to.sizes()));
    read_.tensors = std::ssize(copies_);
    return read_;
  }

 private:
  struct Copy {
    Tensor to, from;
  };

  void plan(const WeightPlace& place) {
    const auto at = named_.tensors.find(place.theirs);
    const TensorEntry* entry = at == named_.tensors.end() ? nullptr : at->second;
    if (place.is_head && keeps_own_head(place, entry)) return;
    if (entry == nullptr && place.theirs.starts_with("bert.pooler.")) {
      if (place.theirs.ends_with(".weight")) {
        read_.notes.push_back("no pooler there: bert.pooler.dense as initialised");
      }
      return;
    }
    if (entry == nullptr) refuse(fmt::format("{} is not there", place.theirs));
    if (entry->shape != place.shape) {
      refuse(fmt::format("{} is {}, here {}", place.theirs, shape_text(entry->shape),
                         shape_text(place.shape)));
    }
    const OwnTensor own = own_tensor(parameters_, place.ours);
    copies_.push_back(
        {own.value.narrow(0, place.begin, place.rows), as_fp32(files_.path(), *entry)});
  }

  bool keeps_own_head(const WeightPlace& place, const TensorEntry* entry) {
    if (entry != nullptr && entry->shape == place.shape) return false;
    if (entry != nullptr && entry->shape.size() == 2 && entry->shape[1] != place.shape[1]) {
      return false;  // of another width: no head of this network
    }
    if (!place.ours.ends_with(".weight")) return true;
    read_.notes.push_back(
        entry == nullptr
            ? "no classifier there: as initialised"
            : fmt::format("a classifier for {} label{} there, for {} here: as initialised",
                          entry->shape[0], entry->shape[0] == 1 ? "" : "s", place.shape[0]));
    return true;
  }

  // Refuses layers of another depth, which must not go unnoticed; notes heads for other tasks.
  void note_unused(const std::set<std::string>& known) {
    std::vector<std::string> unused;
    for (const std::string& name : named_.order) {
      if (known.contains(name) || name.ends_with("position_ids")) continue;
      if (name.starts_with("bert.encoder.") || name.starts_with("bert.embeddings.")) {
        refuse(fmt::format("{} has no place in this network", name));
      }
      if (!name.starts_with("classifier.")) unused.push_back(name);
    }
    note_unused_tensors(unused, read_.notes);
  }

  [[noreturn]] void refuse(const std::string& difference) const {
    refuse_weights(files_.path(), difference);
  }

  const WeightFiles& files_;
  const Parameters& parameters_;
  NamedWeights named_;
  BertWeightsRead read_;
  std::vector<Copy> copies_;
};

}  // namespace

bool is_bert_folder(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  if (!fs::is_regular_file(path)) return false;
  const Json json = Json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.value("model_type", Json()) == "bert";
}

BertConfig read_bert_config(const fs::path& folder) {
  const fs::path path = config_file(folder);
  if (!fs::exists(path)) throw DataError("{}: there is no such file", path.string());
  try {
    return config_of(Json::parse(read_file(path)), path);
  } catch (const nlohmann::json::exception& problem) {
    DataError error("{}: damaged", path.string());
    error.set_cause(problem.what());
    throw error;
  }
}

void write_bert_config(const fs::path& file, const BertConfig& config,
                       const std::string& precision) {
  const BertShape& s = config.shape;
  Json names = Json::object(), ids = Json::object();
  for (std::size_t i = 0; i < config.labels.size(); ++i) {
    names[std::to_string(i)] = config.labels[i];
    ids[config.labels[i]] = i;
  }
  Json json = {{"architectures", {"BertForSequenceClassification"}},
               {"model_type", "bert"},
               {"vocab_size", s.vocab_size},
               {"hidden_size", s.hidden_size},
               {"num_hidden_layers", s.num_hidden_layers},
               {"num_attention_heads", s.num_attention_heads},
               {"intermediate_size", s.intermediate_size},
               {"hidden_act", "gelu"},
               {"max_position_embeddings", s.max_position_embeddings},
               {"type_vocab_size", s.type_vocab_size},
               {"layer_norm_eps", s.layer_norm_eps},
               {"initializer_range", s.initializer_range},
               {"hidden_dropout_prob", s.hidden_dropout_prob},
               {"attention_probs_dropout_prob", s.attention_probs_dropout_prob},
               {"classifier_dropout", s.classifier_dropout ? Json(*s.classifier_dropout) : Json()},
               {"position_embedding_type", "absolute"},
               {"pad_token_id", 0},
               {"problem_type", config.regression ? "regression" : "single_label_classification"},
               {"id2label", names},
               {"label2id", ids},
               {"torch_dtype", precision == "bf16" ? "bfloat16" : "float32"}};
  write_file(file, json.dump(2) + "\n");
}

std::vector<WeightPlace> bert_places(const Parameters& parameters) {
  std::vector<WeightPlace> out;
  for (const ParameterRef& p : parameters.list()) {
    WeightPlace place{p->name, p->name,     p->shape,
                      0,       p->shape[0], p->name.starts_with("classifier.")};
    const std::size_t at = p->name.find(kQkv);
    if (at == std::string::npos) {
      out.push_back(place);
      continue;
    }
    const std::string stem = p->name.substr(0, at) + ".attention.self.";
    const std::string kind = p->name.substr(at + std::string(kQkv).size());
    place.shape[0] = place.rows = p->shape[0] / 3;
    for (const char* part : {"query.", "key.", "value."}) {
      place.theirs = stem + part + kind;
      out.push_back(place);
      place.begin += place.rows;
    }
  }
  return out;
}

bool holds_bert_weights(const fs::path& file) {
  const WeightFiles files(file);
  const bool ours = std::any_of(
      files.entries().begin(), files.entries().end(),
      [](const TensorEntry& entry) { return entry.name.find(kQkv) != std::string::npos; });
  return !ours && prefix_of(files.entries()).has_value();
}

BertWeightsRead read_bert_weights(const fs::path& file, Parameters& parameters) {
  torch::NoGradGuard no_grad;
  const WeightFiles files(file);
  BertWeightsRead read = BertReader(files, parameters).run();
  parameters.refresh_low();
  return read;
}

int64_t write_bert_folder(const fs::path& folder, const BertConfig& config,
                          const Parameters& parameters, const std::string& precision) {
  torch::NoGradGuard no_grad;
  make_model_folder(folder);
  WeightWriter weights(precision);
  for (const WeightPlace& place : bert_places(parameters)) {
    const OwnTensor own = own_tensor(parameters, place.ours);
    weights.add(place.theirs, own.value.narrow(0, place.begin, place.rows), place.shape);
  }
  weights.write(folder / "model.safetensors");
  write_bert_config(folder / "config.json", config, precision);
  return weights.bytes();
}

}  // namespace lockstep
