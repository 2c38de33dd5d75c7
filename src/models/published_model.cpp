#include "models/published_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHeld = "marian (Marian, OPUS-MT) and m2m_100 (M2M100, NLLB-200)";

Json read_object(const fs::path& path) {
  Json json = Json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw DataError("{}: damaged: not a JSON object", path.string());
  return json;
}

// Looks up settings of one model. Where there is a generation_config.json, transformers takes from
// config.json nothing of how to decode but the special ids.
class Settings {
 public:
  explicit Settings(const fs::path& config) : path_(config.string()), config_(read_object(config)) {
    const fs::path generation = config.parent_path() / kGenerationFile;
    if (fs::exists(generation)) generation_ = read_object(generation);
    has_generation_ = fs::exists(generation);
  }

  const std::string& path() const { return path_; }

  // Returns the value, or `fallback` where it is absent or null.
  template <class T>
  T of_network(const char* key, T fallback) const {
    return value(config_, key, std::move(fallback));
  }
  template <class T>
  T of_decoding(const char* key, T fallback) const {
    return value(has_generation_ ? generation_ : config_, key, std::move(fallback));
  }
  int64_t special_id(const char* key, int64_t fallback) const {
    return of_decoding(key, of_network(key, fallback));
  }

  int64_t size(const char* key, int64_t fallback) const {
    const auto found = of_network<int64_t>(key, fallback);
    if (found < 1) throw DataError("{}: {} is {}; expected at least 1", path_, key, found);
    return found;
  }
  double share(const char* key, double fallback) const {
    const auto found = of_network<double>(key, fallback);
    if (!(found >= 0 && found < 1)) {
      throw DataError("{}: {} is {}; expected at least 0 and below 1", path_, key, found);
    }
    return found;
  }
  // Encoder and decoder must agree, as they do in all published models.
  int64_t common_size(const char* of_encoder, const char* of_decoder, int64_t fallback) const {
    const int64_t encoder = size(of_encoder, fallback), decoder = size(of_decoder, fallback);
    if (encoder == decoder) return encoder;
    throw DataError("{}: {} is {} and {} is {}; lockstep holds networks where they are equal",
                    path_, of_encoder, encoder, of_decoder, decoder);
  }

 private:
  template <class T>
  static T value(const Json& json, const char* key, T fallback) {
    const auto at = json.find(key);
    return at == json.end() || at->is_null() ? fallback : at->get<T>();
  }

  std::string path_;
  Json config_, generation_ = Json::object();
  bool has_generation_ = false;
};

// What a class of transformers takes where config.json is silent.
struct ClassDefaults {
  int64_t vocabulary, pad, eos, start;
  const char* activation;
  bool scales;
};

ClassDefaults defaults_of(const Settings& settings, const std::string& type) {
  if (type == "marian") return {58101, 58100, 0, 58100, "gelu", false};
  if (type == "m2m_100") return {128112, 1, 2, 2, "relu", true};
  throw DataError(
      "{}: {}; lockstep holds {}", settings.path(),
      type.empty() ? "says no model_type" : fmt::format("is a model of type \"{}\"", type), kHeld);
}

std::string activation_of(const Settings& settings, const std::string& fallback) {
  const auto name = settings.of_network<std::string>("activation_function", fallback);
  if (name == "swish") return "silu";
  if (name == "silu" || name == "relu" || name == "gelu") return name;
  throw DataError("{}: activation_function is \"{}\"; lockstep computes relu, gelu, silu and swish",
                  settings.path(), name);
}

// Marian may have a table for each side, and both classes may untie the output's.
void read_tables(const Settings& settings, PublishedModel& model) {
  PublishedVariant& variant = model.config.variant;
  if (model.type == "marian") {
    variant.own_source_table = !settings.of_network("share_encoder_decoder_embeddings", true);
    variant.output_bias = true;
    if (variant.own_source_table) {
      variant.source_pieces = model.vocabulary;
      model.vocabulary = settings.size("decoder_vocab_size", model.vocabulary);
    }
  }
  variant.own_output_table = !settings.of_network("tie_word_embeddings", true);
}

// M2M100 begins the positions behind the id of <pad>, with the waves of Tensor2Tensor.
void read_shape(const Settings& settings, const ClassDefaults& defaults, PublishedModel& model) {
  TransformerConfig& c = model.config;
  c.d_model = settings.size("d_model", 1024);
  c.heads = settings.common_size("encoder_attention_heads", "decoder_attention_heads", 16);
  c.encoder_layers = settings.size("encoder_layers", 12);
  c.decoder_layers = settings.size("decoder_layers", 12);
  c.feed_forward = settings.common_size("encoder_ffn_dim", "decoder_ffn_dim", 4096);
  c.dropout = settings.share("dropout", 0.1);
  c.attention_dropout = settings.share("attention_dropout", model.type == "marian" ? 0.0 : 0.1);
  c.relu_dropout = settings.share("activation_dropout", 0);
  c.activation = activation_of(settings, defaults.activation);
  c.variant.scale_embedding = settings.of_network("scale_embedding", defaults.scales);
  c.norm = model.type == "marian" ? "post" : "pre";
  c.positions = model.type == "marian" ? "paper_halves" : "halves";
  c.variant.first_position = model.type == "marian" ? 0 : model.pad + 1;
  c.longest = std::min<int64_t>(256, settings.size("max_position_embeddings", 1024));
  read_tables(settings, model);
  try {
    c.check();
  } catch (const ConfigError& problem) {
    throw DataError("{}: {}", settings.path(), problem.what());
  }
}

// Ids that are excluded one by one; longer words that are excluded are not held.
std::vector<int32_t> excluded_by(const Settings& settings) {
  std::set<int32_t> out;
  for (const auto& word :
       settings.of_decoding<std::vector<std::vector<int32_t>>>("bad_words_ids", {})) {
    if (word.size() != 1) {
      throw DataError("{}: bad_words_ids has a word of {} ids; lockstep excludes single ones",
                      settings.path(), word.size());
    }
    out.insert(word.front());
  }
  for (int32_t id : settings.of_decoding<std::vector<int32_t>>("suppress_tokens", {})) {
    out.insert(id);
  }
  return {out.begin(), out.end()};
}

int32_t id_of(const Settings& settings, const char* key, int64_t fallback, int64_t rows) {
  const int64_t id = settings.special_id(key, fallback);
  if (id >= 0 && id < rows) return static_cast<int32_t>(id);
  throw DataError("{}: {} is {}; expected an id below vocab_size, which is {}", settings.path(),
                  key, id, rows);
}

void read_decoding(const Settings& settings, const ClassDefaults& defaults, PublishedModel& model) {
  const int64_t rows = model.vocabulary;
  model.eos = id_of(settings, "eos_token_id", defaults.eos, rows);
  model.start = id_of(settings, "decoder_start_token_id", defaults.start, rows);
  if (const int64_t forced = settings.special_id("forced_bos_token_id", -1); forced >= 0) {
    model.forced_bos = id_of(settings, "forced_bos_token_id", forced, rows);
  }
  for (int32_t id : excluded_by(settings)) {
    if (id >= 0 && id < rows) model.never.push_back(id);
  }
  model.ends_at_limit = settings.special_id("forced_eos_token_id", -1) == model.eos;
  model.renormalizes = settings.of_decoding("renormalize_logits", false);
  const int64_t beams = settings.of_decoding<int64_t>("num_beams", 0);
  const int64_t longest = settings.of_decoding<int64_t>("max_length", 0);
  if (beams > 0) model.beam_size = beams;
  if (longest > 2) model.max_length = longest;
  model.min_length = std::max<int64_t>(0, settings.of_decoding<int64_t>("min_length", 0));
  model.length_penalty = settings.of_decoding("length_penalty", 1.0);
  if (model.length_penalty < 0) {
    throw DataError("{}: length_penalty is {}; expected at least 0", settings.path(),
                    model.length_penalty);
  }
  model.early_stopping = settings.of_decoding<Json>("early_stopping", false) == Json(true);
}

}  // namespace

bool is_published_model(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  if (!fs::is_regular_file(path)) return false;
  const Json json = Json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  return json.is_object() && !json.contains("lockstep");
}

PublishedModel read_published_model(const fs::path& config) {
  if (!fs::exists(config)) throw DataError("{}: there is no such file", config.string());
  try {
    const Settings settings(config);
    PublishedModel model;
    model.type = settings.of_network<std::string>("model_type", "");
    const ClassDefaults defaults = defaults_of(settings, model.type);
    model.vocabulary = settings.size("vocab_size", defaults.vocabulary);
    model.pad = id_of(settings, "pad_token_id", defaults.pad, model.vocabulary);
    read_shape(settings, defaults, model);
    read_decoding(settings, defaults, model);
    model.config_json = read_file(config);
    const fs::path generation = config.parent_path() / kGenerationFile;
    if (fs::exists(generation)) model.generation_json = read_file(generation);
    return model;
  } catch (const nlohmann::json::exception& problem) {
    DataError error("{}: a value of another type than expected", config.string());
    error.set_cause(problem.what());
    throw error;
  }
}

}  // namespace lockstep
