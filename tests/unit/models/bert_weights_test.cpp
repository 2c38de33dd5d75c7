#include "models/bert_weights.h"

#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "formats/weight_files.h"
#include "support/expect_error.h"
#include "support/tiny_bert.h"

namespace lockstep {
namespace {

using torch::Tensor;

const BertConfig kConfig{kTinyBert, {"bad", "so-so", "good"}, false};

class BertFolders : public ::testing::Test {
 protected:
  BertFolders() { write_bert_folder(folder(), kConfig, tiny_.parameters, "fp32"); }

  fs::path folder() const { return temporary_.path() / "model"; }
  fs::path file() const { return folder() / "model.safetensors"; }

  static Tensor logits(const Bert& model) {
    torch::NoGradGuard no_grad;
    return model.logits(random_texts({5, 9}, {1, 2}), {.numerics = {}});
  }

  // The file's tensors under other names; an empty one leaves the tensor out.
  fs::path renamed(const std::function<std::string(const std::string&)>& rename) const {
    const TensorFile whole(file());
    std::vector<TensorEntry> entries;
    for (TensorEntry entry : whole.entries()) {
      entry.name = rename(entry.name);
      if (!entry.name.empty()) entries.push_back(entry);
    }
    const fs::path path = temporary_.path() / "renamed.safetensors";
    write_tensor_file(path, entries);
    return path;
  }
  void expect_equal(const fs::path& path) const {
    TinyBert other(kTinyBert, 9);
    read_bert_weights(path, other.parameters);
    EXPECT_TRUE(torch::equal(logits(other.model), logits(tiny_.model)));
  }

  TemporaryFolder temporary_;
  TinyBert tiny_;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST_F(BertFolders, AreReadBackBitByBit) {
  EXPECT_TRUE(is_bert_folder(folder()));
  const BertConfig read = read_bert_config(folder());
  EXPECT_EQ(read.labels, kConfig.labels);
  EXPECT_EQ(read.shape.hidden_size, 32);
  EXPECT_EQ(read.shape.num_labels, 3);
  EXPECT_FALSE(read.regression);
  expect_equal(file());
}

TEST_F(BertFolders, AreReadByOtherNames) {
  expect_equal(renamed([](const std::string& name) { return "module." + name; }));
  // As a model without a head saves itself, here with a head all the same.
  expect_equal(renamed([](const std::string& name) { return replaced(name, "bert.", ""); }));
  expect_equal(renamed([](const std::string& name) {
    return replaced(replaced(name, "LayerNorm.weight", "LayerNorm.gamma"), "LayerNorm.bias",
                    "LayerNorm.beta");
  }));
}

TEST_F(BertFolders, AreReadFromTorchsArchives) {
  c10::Dict<std::string, Tensor> dict;
  const TensorFile whole(file());
  for (const TensorEntry& entry : whole.entries()) {
    dict.insert(entry.name, as_fp32(file(), entry));
  }
  const std::vector<char> bytes = torch::jit::pickle_save(dict);
  const fs::path path = temporary_.path() / "pytorch_model.bin";
  write_file(path, {bytes.data(), bytes.size()});
  expect_equal(path);
  // A file that was cut off is none at all: its directory stands at the end.
  write_file(path, {bytes.data(), bytes.size() / 2});
  EXPECT_ERROR(WeightFiles{path}, DataError, "was the file cut off?");
  write_file(path, "a pickle of 2019");
  EXPECT_ERROR(WeightFiles{path}, DataError, "from before torch 1.6");
}

TEST_F(BertFolders, AreReadFromSeveralFiles) {
  const TensorFile whole(file());
  nlohmann::json index = {{"weight_map", nlohmann::json::object()}};
  std::vector<TensorEntry> parts[2];
  for (const TensorEntry& entry : whole.entries()) {
    const std::size_t part = index["weight_map"].size() % 2;
    parts[part].push_back(entry);
    index["weight_map"][entry.name] = fmt::format("part{}.safetensors", part);
  }
  for (int i : {0, 1}) {
    write_tensor_file(temporary_.path() / fmt::format("part{}.safetensors", i), parts[i]);
  }
  const fs::path path = temporary_.path() / "model.safetensors.index.json";
  write_file(path, index.dump());
  EXPECT_EQ(find_weight_file(temporary_.path()), path);
  expect_equal(path);
  index["weight_map"]["more"] = "part0.safetensors";
  write_file(path, index.dump());
  EXPECT_ERROR(WeightFiles{path}, DataError,
               "names the tensor more, which none of its files holds");
  index["weight_map"]["more"] = "../part0.safetensors";
  write_file(path, index.dump());
  EXPECT_ERROR(WeightFiles{path}, DataError, "outside its folder");
}

TEST_F(BertFolders, GiveTheirHeadUpForOtherClasses) {
  BertShape shape = kTinyBert;
  shape.num_labels = 5;
  TinyBert other(shape, 9);
  const Tensor before = other.parameters.find("classifier.weight")->value.detach().clone();
  const BertWeightsRead read = read_bert_weights(file(), other.parameters);
  ASSERT_EQ(read.notes.size(), 1u);
  EXPECT_EQ(read.notes[0], "a classifier for 3 labels there, for 5 here: as initialised");
  EXPECT_TRUE(torch::equal(other.parameters.find("classifier.weight")->value, before));
  const auto without = [](const std::string& name) {
    return name.starts_with("classifier.") || name.starts_with("bert.pooler.") ? "" : name;
  };
  const std::vector<std::string> notes =
      read_bert_weights(renamed(without), other.parameters).notes;
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0], "no pooler there: bert.pooler.dense as initialised");
  EXPECT_EQ(notes[1], "no classifier there: as initialised");
}

TEST_F(BertFolders, OfAnotherNetworkAreRefusedBeforeAnythingChanges) {
  TinyBert other(kTinyBert, 9);
  const Tensor before = other.parameters.values().clone();
  EXPECT_ERROR(read_bert_weights(renamed([](const std::string& name) {
                                   return name == "bert.encoder.layer.1.output.dense.bias" ? ""
                                                                                           : name;
                                 }),
                                 other.parameters),
               DataError, "bert.encoder.layer.1.output.dense.bias is not there");
  EXPECT_ERROR(read_bert_weights(renamed([](const std::string& name) {
                                   return name == "classifier.bias"
                                              ? "bert.encoder.layer.3.output.dense.bias"
                                              : name;
                                 }),
                                 other.parameters),
               DataError, "bert.encoder.layer.3.output.dense.bias has no place in this network");
  EXPECT_ERROR(read_bert_weights(renamed([](const std::string& name) {
                                   return replaced(name, "word_embeddings", "letters");
                                 }),
                                 other.parameters),
               DataError, "the weights of no BERT");
  BertShape wide = kTinyBert;
  wide.vocab_size = 60;
  TinyBert larger(wide);
  EXPECT_ERROR(read_bert_weights(file(), larger.parameters), DataError,
               "bert.embeddings.word_embeddings.weight is [50, 32], here [60, 32]");
  EXPECT_TRUE(torch::equal(other.parameters.values(), before));
}

TEST_F(BertFolders, SayWhatIsWrongWithTheirConfiguration) {
  const nlohmann::json whole = nlohmann::json::parse(read_file(folder() / "config.json"));
  auto expect = [&](const char* key, const nlohmann::json& value, const std::string& words) {
    nlohmann::json json = whole;
    json[key] = value;
    write_file(folder() / "config.json", json.dump());
    EXPECT_ERROR(read_bert_config(folder()), DataError, words);
  };
  expect("hidden_act", "relu", "hidden_act is \"relu\", which lockstep does not compute");
  expect("model_type", "roberta", "model_type is \"roberta\"");
  expect("num_attention_heads", 5, "hidden_size 32 does not divide into 5 heads");
  expect("hidden_size", 0, "hidden_size is 0; expected at least 1");
  expect("hidden_dropout_prob", 1.5, "expected at least 0 and below 1");
  expect("id2label", {{"1", "good"}}, "id2label lacks label 0");
  expect("hidden_size", "wide", "damaged");
  write_file(folder() / "config.json", "{");
  EXPECT_ERROR(read_bert_config(folder()), DataError, "damaged");
  EXPECT_FALSE(is_bert_folder(folder()));
  EXPECT_ERROR(write_bert_folder(folder(), kConfig, tiny_.parameters, "fp32"), ConfigError,
               "already holds a model");
}

}  // namespace
}  // namespace lockstep
