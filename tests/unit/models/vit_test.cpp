#include "models/vit.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensor_compare.h"
#include "support/tiny_vit.h"

namespace lockstep {
namespace {

using torch::Tensor;

struct VitPass {
  Tensor logits, gradients;
};

VitPass run(TinyVit& tiny, const Tensor& images, ImageForward how) {
  tiny.parameters.gradients().zero_();
  const Tensor keys = torch::arange(images.size(0)) * 31 + 7;
  how.rows = &keys;
  const Tensor logits = tiny.model.logits(images.to(how.numerics.compute), how);
  at::cross_entropy_loss(logits.to(torch::kFloat), torch::arange(images.size(0)) % 7).backward();
  return {logits.detach(), tiny.parameters.gradients().clone()};
}

TEST(Vit, FusedEqualsPlain) {
  for (const char* pool : {"class", "mean"}) {
    for (double dropped : {0.0, 0.2}) {
      SCOPED_TRACE(std::string(pool) + " " + std::to_string(dropped));
      ImageModelConfig config;
      config.pool = pool;
      config.dropout = config.attention_dropout = config.drop_path = dropped;
      TinyVit tiny(config);
      const Tensor images = random_images(5, 32);
      const VitPass plain = run(tiny, images, {.numerics = {at::kFloat, false}, .training = true});
      const VitPass fused = run(tiny, images, {.numerics = {}, .training = true});
      // Sums in another order, through 3 blocks and back.
      EXPECT_LT(relative_difference(fused.logits, plain.logits), 1e-4);
      EXPECT_LT(relative_difference(fused.gradients, plain.gradients), 1e-4);
      const VitPass low = run(tiny, images, {.numerics = {at::kBFloat16}, .training = true});
      EXPECT_LT(relative_difference(low.logits, plain.logits), 5e-2);
    }
  }
}

// What is dropped depends on the image's key, the step and the seed, not on the batch.
TEST(Vit, AnImagesLogitsDoNotDependOnItsBatch) {
  ImageModelConfig config;
  config.dropout = config.attention_dropout = 0.1;
  config.drop_path = 0.5;
  TinyVit tiny(config);
  const Tensor images = random_images(6, 32), keys = torch::arange(6) * 1000003;
  torch::NoGradGuard no_grad;
  auto logits = [&](const Tensor& some, const Tensor& rows, int64_t step) {
    return tiny.model.logits(
        some, {.numerics = {}, .training = true, .seed = 5, .step = step, .rows = &rows});
  };
  const Tensor all = logits(images, keys, 3);
  const Tensor part = logits(images.narrow(0, 2, 3).contiguous(torch::MemoryFormat::ChannelsLast),
                             keys.narrow(0, 2, 3).contiguous(), 3);
  EXPECT_LT(relative_difference(part, all.narrow(0, 2, 3)), 1e-5);
  EXPECT_GT(relative_difference(logits(images, keys, 4), all), 1e-2);
  EXPECT_GT(relative_difference(logits(images, keys + 1, 3), all), 1e-2);
  const ImageForward in_use{.numerics = {}};
  EXPECT_TRUE(torch::equal(tiny.model.logits(images, in_use), tiny.model.logits(images, in_use)));
}

TEST(Vit, DropPathLeavesOutWholeBranchesOfTheLastBlock) {
  ImageModelConfig config;
  config.drop_path = 0.999;  // of the last block; the first never is
  VitShape shape = kTinyVit;
  shape.layers = 2;
  TinyVit tiny(config, 7, 32, shape), shallow({}, 7, 32, {32, 1, 4, 48, 8});
  torch::NoGradGuard no_grad;
  for (const ParameterRef& p : shallow.parameters.list()) {
    p->value.copy_(tiny.parameters.find(p->name)->value);
  }
  const Tensor images = random_images(4, 32), keys = torch::arange(4);
  const Tensor deep =
      tiny.model.logits(images, {.numerics = {}, .training = true, .seed = 1, .rows = &keys});
  EXPECT_LT(relative_difference(deep, shallow.model.logits(images, {.numerics = {}})), 1e-5);
}

TEST(Vit, TakesImagesOfOtherSizes) {
  TinyVit tiny;
  const Tensor images = random_images(2, 32);
  const Tensor wide = torch::cat({images, images}, 3).contiguous(torch::MemoryFormat::ChannelsLast);
  const ImageForward how{.numerics = {}};
  const Tensor logits = tiny.model.logits(wide, how);  // 4 x 8 patches
  EXPECT_EQ(logits.sizes(), (std::vector<int64_t>{2, 7}));
  tiny.parameters.gradients().zero_();
  logits.sum().backward();
  EXPECT_GT(tiny.parameters.find("pos_embed")->value.grad().abs().sum().item<float>(), 0);
  EXPECT_ERROR(tiny.model.logits(random_images(1, 36), how), ConfigError, "36 x 36 pixels");
}

TEST(Vit, InterpolatedPositionsKeepAConstantAndTheOwnGrid) {
  const Tensor rows = torch::full({16, 3}, 2.5f);
  EXPECT_TRUE(torch::allclose(resize_grid(rows, 4, 7, 9), torch::full({63, 3}, 2.5f)));
  const Tensor other = torch::randn({16, 3});
  EXPECT_TRUE(torch::allclose(resize_grid(other, 4, 4, 4), other, 1e-5, 1e-6));
}

TEST(Vit, HasTimmsNamesAndSizes) {
  Parameters parameters;
  ImageModelConfig config;
  config.name = "vit_b16";
  make_image_model(config, 1000, 224, parameters);
  EXPECT_EQ(parameters.count(), 86567656);  // timm's vit_base_patch16_224
  for (const char* name : {"cls_token", "pos_embed", "patch_embed.proj.weight", "norm.bias",
                           "blocks.11.attn.qkv.weight", "blocks.0.mlp.fc2.bias", "head.weight"}) {
    EXPECT_NE(parameters.find(name), nullptr) << name;
  }
  for (const auto& [name, count] :
       {std::pair{"vit_ti16", 5717416}, std::pair{"vit_s16", 22050664}}) {
    Parameters own;
    config.name = name;
    make_image_model(config, 1000, 224, own);
    EXPECT_EQ(own.count(), count) << name;  // timm's
  }
}

TEST(Vit, StartsAsTimms) {
  Parameters parameters;
  Vit model({}, kVitTiny, {10, 64}, parameters);
  parameters.allocate(torch::kCPU, torch::kFloat, 3);
  auto deviation = [&](const char* name) {
    return parameters.find(name)->value.std().item<double>();
  };
  EXPECT_NEAR(deviation("blocks.3.mlp.fc1.weight"), 0.02, 5e-4);
  EXPECT_NEAR(deviation("pos_embed"), 0.02, 2e-3);
  EXPECT_NEAR(deviation("patch_embed.proj.weight"), 1 / std::sqrt(3.0 * 768), 1e-3);
  EXPECT_NEAR(deviation("head.weight"), 0.02, 1.5e-3);  // 10 x 192 numbers
  EXPECT_EQ(parameters.find("blocks.3.attn.qkv.bias")->value.abs().max().item<float>(), 0);
}

TEST(Vit, RefusesSizesThatPatchesDoNotFill) {
  Parameters parameters;
  ImageModelConfig config;
  config.name = "vit_ti16";
  EXPECT_ERROR(make_image_model(config, 10, 30, parameters), ConfigError,
               "model.patch: images of 30");
  config.name = "vit_t16";
  EXPECT_ERROR(make_image_model(config, 10, 32, parameters), ConfigError, "did you mean vit_ti16");
}

}  // namespace
}  // namespace lockstep
