#include "models/hugging_face.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/expect_error.h"
#include "support/tiny_transformer.h"

namespace lockstep {
namespace {

constexpr int64_t kVocabulary = 23;

void save(const fs::path& folder, const TinyTransformer& tiny, const std::string& precision) {
  const TransformerConfig& config = tiny.model.config();
  const ExportedIds ids = exported_ids(config, kVocabulary, 2, 1);
  write_hugging_face_weights(folder / "model.safetensors", tiny.model, tiny.parameters, ids,
                             precision);
  nlohmann::ordered_json json = hugging_face_config(config, ids, precision);
  json["lockstep"]["decoding"] = {{"beam_size", 5}, {"length_penalty", 1.5}};
  write_file(folder / "config.json", json.dump());
}

struct Loaded {
  HuggingFaceModel model;
  TinyTransformer tiny;
  explicit Loaded(const fs::path& folder)
      : model(read_hugging_face_config(folder)), tiny(model.config, model.vocabulary, 99) {
    read_hugging_face_weights(folder, tiny.parameters);
  }
};

TransformerConfig variant(const std::string& name) {
  TransformerConfig config = TinyTransformer::tiny_config();
  config.norm = name == "post" ? "post" : "pre";
  config.positions = name == "post" ? "halves" : "interleaved";
  config.activation = name == "post" ? "gelu" : "relu";
  config.attention_bias = name != "bare";
  return config;
}

TEST(HuggingFace, GivesEveryWeightBack) {
  for (const char* name : {"pre", "post", "bare"}) {
    SCOPED_TRACE(name);
    TemporaryFolder folder;
    const TinyTransformer tiny(variant(name));
    save(folder.path(), tiny, "fp32");
    const Loaded loaded(folder.path());
    EXPECT_EQ(loaded.model.vocabulary, kVocabulary);
    EXPECT_EQ(loaded.model.precision, "fp32");
    EXPECT_EQ(loaded.model.beam_size, 5);
    EXPECT_EQ(loaded.model.length_penalty, 1.5);
    EXPECT_EQ(loaded.model.config.norm, tiny.model.config().norm);
    EXPECT_EQ(loaded.model.config.activation, tiny.model.config().activation);
    EXPECT_EQ(loaded.model.config.positions, tiny.model.config().positions);
    for (const ParameterRef& p : loaded.tiny.parameters.list()) {
      const Parameter* original = tiny.parameters.find(p->name);
      if (original == nullptr) {  // a bias that the network had not: zeros
        EXPECT_EQ(p->value.abs().max().item<float>(), 0) << p->name;
      } else {
        EXPECT_TRUE(torch::equal(p->value, original->value)) << p->name;
      }
    }
  }
}

TEST(HuggingFace, GivesAStartOfZerosBack) {
  TransformerConfig config = variant("pre");
  config.start = "zero";
  config.norm_epsilon = 1e-6;
  TemporaryFolder folder;
  const TinyTransformer tiny(config);
  save(folder.path(), tiny, "fp32");
  const Loaded loaded(folder.path());
  EXPECT_EQ(loaded.model.vocabulary, kVocabulary);
  EXPECT_EQ(loaded.model.config.start, "zero");
  EXPECT_EQ(loaded.model.config.norm_epsilon, 1e-6);
  for (const ParameterRef& p : loaded.tiny.parameters.list()) {  // scaled and scaled back
    EXPECT_TRUE(torch::allclose(p->value, tiny.parameters.find(p->name)->value, 1e-6, 1e-9))
        << p->name;
  }
}

TEST(HuggingFace, RoundsMatricesToSixteenAndEightBits) {
  for (const auto& [precision, tolerance] : {std::pair{"bf16", 1.0 / 256},  // 8 bits: half a step
                                             std::pair{"int8", 0.51 / 127}}) {
    SCOPED_TRACE(precision);
    TemporaryFolder folder;
    const TinyTransformer tiny(variant("post"));
    save(folder.path(), tiny, precision);
    const Loaded loaded(folder.path());
    for (const ParameterRef& p : loaded.tiny.parameters.list()) {
      const torch::Tensor original = tiny.parameters.find(p->name)->value;
      if (p->shape.size() == 1) {
        EXPECT_TRUE(torch::equal(p->value, original)) << p->name;
        continue;
      }
      const torch::Tensor bound = original.abs().amax(1, true) * tolerance;
      EXPECT_TRUE(((p->value - original).abs() <= bound).all().item<bool>()) << p->name;
      EXPECT_FALSE(torch::equal(p->value, original)) << p->name;
    }
  }
}

TEST(HuggingFace, NamesTheTensorOfAnotherArchitecture) {
  TemporaryFolder folder;
  save(folder.path(), TinyTransformer(variant("pre")), "fp32");
  TransformerConfig config = variant("pre");
  config.feed_forward = 48;
  TinyTransformer wider(config);
  EXPECT_ERROR(
      read_hugging_face_weights(folder.path(), wider.parameters), DataError,
      "tensor model.encoder.layers.0.fc1.weight: expected F32 [48, 24], found F32 [40, 24]");
  config = variant("pre");
  config.decoder_layers = 3;
  TinyTransformer deeper(config);
  EXPECT_ERROR(read_hugging_face_weights(folder.path(), deeper.parameters), DataError,
               "model.decoder.layers.2.self_attn.q_proj.weight");
}

TEST(HuggingFace, RefusesVariantsThatNoClassComputes) {
  TransformerConfig config = variant("post");
  config.start = "zero";
  EXPECT_THROW(check_exportable(config), ConfigError);
  config = variant("post");
  config.norm_epsilon = 1e-6;
  EXPECT_THROW(check_exportable(config), ConfigError);
  config.norm = "pre";
  config.start = "zero";
  EXPECT_NO_THROW(check_exportable(config));
  EXPECT_NO_THROW(check_exportable(variant("post")));
}

}  // namespace
}  // namespace lockstep
