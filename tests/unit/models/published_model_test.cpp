#include "models/published_model.h"

#include <gtest/gtest.h>

#include "formats/tensor_file.h"
#include "support/expect_error.h"
#include "support/tiny_marian.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json tiny_m2m100_config() {
  Json json = tiny_marian_config(50);
  json.update({{"model_type", "m2m_100"},
               {"activation_function", "relu"},
               {"pad_token_id", 1},
               {"eos_token_id", 2},
               {"decoder_start_token_id", 2},
               {"forced_bos_token_id", 44},
               {"early_stopping", true}});
  json.erase("bad_words_ids");
  return json;
}

class Published : public ::testing::Test {
 protected:
  fs::path path() const { return folder_.path(); }

  void write_config(const Json& json) const { write_file(path() / "config.json", json.dump()); }
  PublishedModel read(const Json& json) const {
    write_config(json);
    return read_published_model(path() / "config.json");
  }

  // A network for the configuration in the folder, whose weights are not those in the folder.
  struct Network {
    explicit Network(const fs::path& folder)
        : published(read_published_model(folder / "config.json")),
          model(published.config, published.vocabulary, parameters) {
      parameters.allocate(torch::kCPU, torch::kFloat, 99);
    }
    std::vector<std::string> read(const fs::path& folder) {
      return read_published_weights(folder, published, parameters);
    }
    PublishedModel published;
    Parameters parameters;
    Transformer model;
  };

  TemporaryFolder folder_;
};

TEST_F(Published, ConfigurationsGiveTheNetworkOfTheirClass) {
  const PublishedModel marian = read(tiny_marian_config(50));
  EXPECT_EQ(marian.config.norm, "post");
  EXPECT_EQ(marian.config.positions, "paper_halves");
  EXPECT_EQ(marian.config.activation, "silu");
  EXPECT_EQ(marian.config.variant.first_position, 0);
  EXPECT_TRUE(marian.config.variant.output_bias);
  EXPECT_EQ(marian.start, 49);
  EXPECT_EQ(marian.never, std::vector<int32_t>{49});
  EXPECT_EQ(marian.beam_size, 2);
  EXPECT_TRUE(marian.ends_at_limit);

  const PublishedModel m2m100 = read(tiny_m2m100_config());
  EXPECT_EQ(m2m100.config.norm, "pre");
  EXPECT_EQ(m2m100.config.positions, "halves");
  EXPECT_EQ(m2m100.config.variant.first_position, 2);
  EXPECT_FALSE(m2m100.config.variant.output_bias);
  EXPECT_EQ(m2m100.forced_bos, 44);
  EXPECT_TRUE(m2m100.early_stopping);
}

TEST_F(Published, GenerationConfigurationsDecideHowToDecode) {
  write_file(path() / "generation_config.json", R"({"num_beams": 5, "length_penalty": 0.5})");
  const PublishedModel model = read(tiny_marian_config(50));
  EXPECT_EQ(model.beam_size, 5);
  EXPECT_EQ(model.length_penalty, 0.5);
  EXPECT_FALSE(model.max_length.has_value());  // as transformers: config.json is not asked
  EXPECT_TRUE(model.never.empty());
  EXPECT_EQ(model.start, 49);
}

TEST_F(Published, NetworksThatAreNotHeldAreRefused) {
  auto expect = [&](const char* key, const Json& value, const char* words) {
    SCOPED_TRACE(key);
    Json json = tiny_marian_config(50);
    json[key] = value;
    EXPECT_ERROR(read(json), DataError, words);
  };
  expect("model_type", "t5",
         "is a model of type \"t5\"; lockstep holds marian (Marian, OPUS-MT) and m2m_100");
  expect("activation_function", "gelu_new", "lockstep computes relu, gelu, silu and swish");
  expect("decoder_ffn_dim", 64, "encoder_ffn_dim is 48 and decoder_ffn_dim is 64");
  expect("encoder_attention_heads", 8, "lockstep holds networks where they are equal");
  expect("d_model", "wide", "a value of another type than expected");
  expect("decoder_start_token_id", 50, "expected an id below vocab_size, which is 50");
  expect("bad_words_ids", {{1, 2}}, "bad_words_ids has a word of 2 ids");
  expect("dropout", 1.5, "dropout is 1.5");
  EXPECT_ERROR(read(Json::array()), DataError, "damaged");
}

TEST_F(Published, WeightsComeBackAsTheyWereWritten) {
  Json untied = tiny_marian_config(50), apart = tiny_marian_config(50);
  untied["tie_word_embeddings"] = false;
  apart["share_encoder_decoder_embeddings"] = false;
  apart["decoder_vocab_size"] = 60;
  int number = 0;
  for (const Json& config : {tiny_marian_config(50), untied, apart, tiny_m2m100_config()}) {
    SCOPED_TRACE(number);
    const fs::path one = path() / std::to_string(number++), two = one.string() + "-again";
    make_published_weights(one, config);
    Network network(one);
    EXPECT_TRUE(network.read(one).empty());
    fs::create_directories(two);
    write_published_model(two, network.published, network.parameters, "fp32");
    EXPECT_EQ(read_file(one / "model.safetensors"), read_file(two / "model.safetensors"));
    EXPECT_EQ(Json::parse(read_file(two / "config.json")), config);
  }
}

TEST_F(Published, WeightsOfAnotherNetworkAreRefusedByName) {
  make_published_weights(path(), tiny_marian_config(50));
  const std::string weights = read_file(path() / "model.safetensors");
  auto expect = [&](const char* key, const Json& value, const char* words) {
    SCOPED_TRACE(key);
    Json json = tiny_marian_config(50);
    json[key] = value;
    write_config(json);
    Network network(path());
    const torch::Tensor before = network.parameters.values().clone();
    EXPECT_ERROR(network.read(path()), DataError, words);
    EXPECT_TRUE(torch::equal(before, network.parameters.values()));
  };
  expect("vocab_size", 51, "model.shared.weight is [50, 32], expected [51, 32]");
  expect("encoder_layers", 3, "model.encoder.layers.2.self_attn.q_proj.weight is not there");
  expect("encoder_layers", 1, "model.encoder.layers.1");
  Json wide = tiny_marian_config(50);
  wide["encoder_ffn_dim"] = wide["decoder_ffn_dim"] = 64;
  write_config(wide);
  EXPECT_ERROR(Network(path()).read(path()), DataError,
               "model.encoder.layers.0.fc1.weight is [48, 32], expected [64, 32]");
  write_config(tiny_marian_config(50));
  write_file(path() / "model.safetensors", weights.substr(0, weights.size() - 100));
  EXPECT_ERROR(Network(path()).read(path()), DataError, "model.safetensors");
  fs::remove(path() / "model.safetensors");
  EXPECT_ERROR(Network(path()).read(path()), DataError,
               "neither model.safetensors nor pytorch_model.bin");
}

TEST_F(Published, LearnedPositionsAreRefused) {
  make_published_weights(path(), tiny_marian_config(50));
  Network network(path());
  const torch::Tensor right = computed_positions(network.model.config(), 128).contiguous();
  const torch::Tensor wrong = right + 0.01;
  for (const torch::Tensor* positions : {&right, &wrong}) {
    const TensorFile file(path() / "model.safetensors");
    std::vector<TensorEntry> entries = file.entries();
    entries.push_back(
        {"model.encoder.embed_positions.weight",
         DType::kF32,
         {128, 32},
         {static_cast<const std::byte*>(positions->const_data_ptr()), positions->nbytes()}});
    write_tensor_file(path() / "pytorch_model.safetensors", entries, {});
    fs::create_directories(path() / "with");
    fs::copy_file(path() / "pytorch_model.safetensors", path() / "with/model.safetensors",
                  fs::copy_options::overwrite_existing);
    if (positions == &right) {
      EXPECT_TRUE(network.read(path() / "with").empty());
    } else {
      EXPECT_ERROR(network.read(path() / "with"), DataError, "differs by 0.01");
    }
  }
}

}  // namespace
}  // namespace lockstep
