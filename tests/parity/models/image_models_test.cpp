// ResNets and ViTs against transformers, both ways: its weights give the same logits here, one
// training step the same loss, gradients and running statistics; what we write gives the same
// logits there.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/text.h"
#include "formats/tensor_file.h"
#include "models/classifier_folder.h"
#include "models/image_export.h"
#include "models/image_weights.h"
#include "models/vit.h"
#include "support/python.h"
#include "support/tensor_compare.h"
#include "support/tiny_vit.h"

namespace lockstep {
namespace {

using torch::Tensor;

Tensor images_of(const TensorFile& file, const std::string& name) {
  return tensor_of(file, name).contiguous(torch::MemoryFormat::ChannelsLast);
}

struct Network {
  Parameters parameters;
  std::unique_ptr<ImageModel> model;
};

// "vit" and "narrow" (a ResNet-18 of half the width) are those of image_models.py, the others are
// of the catalogue.
Network make_network(const std::string& name, int64_t size, int64_t classes = 7) {
  Network out;
  ImageModelConfig config;
  config.name = name == "narrow" ? "resnet18" : name;
  if (name == "narrow") config.width = 32;
  if (name == "vit") {
    out.model =
        std::make_unique<Vit>(config, kTinyVit, ImageModelShape{classes, size}, out.parameters);
  } else {
    out.model = make_image_model(config, classes, size, out.parameters);
  }
  out.parameters.allocate(torch::kCPU, torch::kBFloat16, 1);
  return out;
}

class ImageModels : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* module : {"transformers", "safetensors", "PIL"}) {
      if (!python_has(module)) GTEST_SKIP() << "needs the Python package " << module;
    }
  }

  // One model of transformers and what it computes, against ours with and without fused kernels.
  void compare(const std::string& name) {
    const fs::path folder = folder_.path() / name;
    const TensorFile step(folder / "step.safetensors");
    const Tensor images = images_of(step, "images");
    for (bool fused : {true, false}) {
      SCOPED_TRACE(name + (fused ? " fused" : " plain"));
      Network network = make_network(name, images.size(3));
      const ImageWeightsRead read = read_image_weights(folder, *network.model, network.parameters);
      EXPECT_EQ(read.flavour, WeightFlavour::kHuggingFace);
      EXPECT_TRUE(read.notes.empty());
      ImageForward how{.numerics = {at::kFloat, fused}};
      {
        torch::NoGradGuard no_grad;
        // fp32 on both sides, sums in another order.
        EXPECT_LT(relative_norm(network.model->logits(images, how), tensor_of(step, "logits")),
                  2e-5);
        if (step.find("wide_images") != nullptr) {
          EXPECT_LT(relative_norm(network.model->logits(images_of(step, "wide_images"), how),
                                  tensor_of(step, "wide_logits")),
                    2e-5);
        }
      }
      how.training = true;
      train(network, images, how, step);
    }
  }

  // A network for the same classes in another order, begun as model.source begins.
  void begin_with_published() const {
    torch::NoGradGuard no_grad;
    const fs::path folder = folder_.path() / "published";
    ASSERT_TRUE(is_classifier_folder(folder));
    const ClassifierFolder there = read_classifier_folder(folder);
    EXPECT_EQ(there.model.name, "vit_ti16");
    EXPECT_EQ(there.size, 32);
    EXPECT_EQ(there.mean, std::vector<double>(3, 0.5));
    EXPECT_EQ(there.std, std::vector<double>(3, 0.5));
    const std::vector<std::string> here = {"eel", "dog", "cat", "bee", "ant"};
    Network network;
    network.model = make_image_model(there.model, 5, 32, network.parameters);
    network.parameters.allocate(torch::kCPU, torch::kBFloat16, 1);
    const ImageWeightsRead read =
        read_image_weights(image_weights_file(folder), *network.model, network.parameters,
                           plan_head(there.classes, here, "auto"));
    EXPECT_EQ(read.notes,
              std::vector<std::string>{"last layer kept: the same 5 classes in another order"});
    const TensorFile answers(folder / "answers.safetensors");
    const Tensor logits =
        network.model->logits(images_of(answers, "images"), {.numerics = {at::kFloat, true}});
    EXPECT_LT(relative_norm(logits.flip(1), tensor_of(answers, "logits")), 2e-5);
  }

  // Where a rounding carries a value over zero a ReLU's slope changes: with few values behind each
  // batch norm that alone moves gradients by a percent, in plain libtorch operations as well. A ViT
  // has no such kinks.
  static double gradient_tolerance(const Parameters& parameters) {
    return family_of(parameters) == ImageFamily::kVit ? 2e-3 : 5e-2;
  }

  static void train(Network& network, const Tensor& images, const ImageForward& how,
                    const TensorFile& step) {
    const Tensor logits = network.model->logits(images, how);
    EXPECT_LT(relative_norm(logits.detach(), tensor_of(step, "trained_logits")), 1e-4);
    const Tensor loss = at::cross_entropy_loss(logits, tensor_of(step, "labels"));
    EXPECT_NEAR(loss.item<double>(), tensor_of(step, "loss").item<double>(), 1e-4);
    loss.backward();
    int64_t gradients = 0, statistics = 0;
    for (const WeightPlace& place :
         weight_places(WeightFlavour::kHuggingFace, network.parameters)) {
      SCOPED_TRACE(place.theirs);
      if (const Parameter* p = network.parameters.find(place.ours)) {
        const Tensor own = p->value.grad().narrow(0, place.begin, place.rows).reshape(place.shape);
        const Tensor expected = tensor_of(step, "gradient." + place.theirs);
        if (!place.theirs.ends_with("key.bias")) {  // changes nothing: its gradient is rounding
          EXPECT_LT(relative_norm(own, expected), gradient_tolerance(network.parameters));
        }
        ++gradients;
      } else {
        const Tensor own = network.parameters.find_buffer(place.ours)->value;
        EXPECT_LT(relative_norm(own, tensor_of(step, "after." + place.theirs)), 1e-4);
        ++statistics;
      }
    }
    int64_t expected = 0;
    for (const std::string& name : step.names()) {
      expected += name.starts_with("gradient.") || name.starts_with("after.");
    }
    EXPECT_EQ(gradients + statistics, expected);
  }

  TemporaryFolder folder_;
};

TEST_F(ImageModels, OfTransformersGiveTheSameLogitsAndTrainTheSameWay) {
  const PythonResult made = run_parity_script("image_models.py", "make " + folder_.path().string());
  ASSERT_EQ(made.status, 0) << made.errors;
  for (const char* name : {"vit", "resnet18", "resnet50", "narrow"}) compare(name);
  EXPECT_EQ(read_classifier_folder(folder_.path() / "resnet50").model.width, 64);
  EXPECT_EQ(read_classifier_folder(folder_.path() / "narrow").model.width, 32);
  begin_with_published();
}

TEST_F(ImageModels, ThatWeWriteGiveTheSameLogitsInTransformers) {
  torch::NoGradGuard no_grad;
  std::string folders;
  std::vector<Tensor> expected;
  for (const char* name : {"vit", "vit_ti16", "resnet18", "resnet50", "narrow"}) {
    const fs::path folder = folder_.path() / name;
    Network network = make_network(name, 32, 5);
    if (std::string(name).starts_with("vit")) scatter_weights(network.parameters, 4);
    ImageExport what;
    what.classes = {"ant", "bee", "cat", "dog", "eel"};
    what.size = 32;
    what.resize = 40;
    what.mean = {0.4, 0.5, 0.6};
    what.std = {0.2, 0.3, 0.4};
    write_image_model(folder, *network.model, network.parameters, what);
    const Tensor images = random_images(3, 32);
    expected.push_back(network.model->logits(images, {.numerics = {}}));
    const Tensor dense = images.contiguous();
    write_tensor_file(folder / "images.safetensors",
                      {{"images",
                        DType::kF32,
                        dense.sizes().vec(),
                        {static_cast<const std::byte*>(dense.const_data_ptr()), dense.nbytes()}}});
    folders += " " + folder.string();
  }
  const PythonResult result = run_parity_script("image_models.py", "check" + folders);
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output,
            "ViTForImageClassification dog [1, 3, 32, 32]\n"
            "ViTForImageClassification dog [1, 3, 32, 32]\n"
            "ResNetForImageClassification dog [1, 3, 32, 32]\n"
            "ResNetForImageClassification dog [1, 3, 32, 32]\n"
            "ResNetForImageClassification dog [1, 3, 32, 32]\n");
  std::size_t at = 0;
  for (const char* name : {"vit", "vit_ti16", "resnet18", "resnet50", "narrow"}) {
    const TensorFile file(folder_.path() / name / "logits.safetensors");
    EXPECT_LT(relative_norm(expected[at++], tensor_of(file, "logits")), 2e-5) << name;
  }
}

}  // namespace
}  // namespace lockstep
