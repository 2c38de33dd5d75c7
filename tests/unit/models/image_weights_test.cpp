#include "models/image_weights.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "formats/tensor_file.h"
#include "models/classifier_folder.h"
#include "models/image_export.h"
#include "support/expect_error.h"
#include "support/tiny_vit.h"

namespace lockstep {
namespace {

using torch::Tensor;

constexpr WeightFlavour kAll[] = {WeightFlavour::kTorchvision, WeightFlavour::kTimm,
                                  WeightFlavour::kHuggingFace};

struct TinyResNet {
  explicit TinyResNet(int64_t classes = 7, uint64_t seed = 1, const std::string& name = "resnet18",
                      const std::string& stem = "imagenet") {
    ImageModelConfig config;
    config.name = name;
    config.stem = stem;
    model = make_image_model(config, classes, 32, parameters);
    parameters.allocate(torch::kCPU, torch::kBFloat16, seed);
    scatter_weights(parameters, seed + 1);
  }
  Parameters parameters;
  std::unique_ptr<ImageModel> model;
};

ImageExport options(WeightFlavour flavour, int64_t classes = 7) {
  ImageExport out;
  out.flavour = flavour;
  for (int64_t i = 0; i < classes; ++i) out.classes.push_back("class " + std::to_string(i));
  out.mean = out.std = {0.5, 0.5, 0.5};
  return out;
}

// Tensors of a file under other names, and some of another shape or none.
void rewrite(const fs::path& from, const fs::path& to,
             const std::function<std::string(std::string)>& rename) {
  const TensorFile file(from);
  std::vector<TensorEntry> entries;
  for (TensorEntry entry : file.entries()) {
    entry.name = rename(entry.name);
    if (!entry.name.empty()) entries.push_back(entry);
  }
  write_tensor_file(to, entries);
}

void expect_equal(const Parameters& actual, const Parameters& expected, bool with_head = true) {
  for (const ParameterRef& p : expected.list()) {
    if (!with_head && (p->name.starts_with("head.") || p->name.starts_with("fc."))) continue;
    EXPECT_TRUE(torch::equal(actual.find(p->name)->value, p->value)) << p->name;
    EXPECT_TRUE(torch::equal(actual.find(p->name)->low, p->low)) << p->name;
  }
  EXPECT_TRUE(torch::equal(actual.buffers(), expected.buffers()));
}

TEST(ImageWeights, GiveEveryWeightBack) {
  for (WeightFlavour flavour : kAll) {
    SCOPED_TRACE(flavour_name(flavour));
    TemporaryFolder folder;
    const TinyVit vit;
    TinyVit other({}, 7, 32, kTinyVit, 9);
    write_image_model(folder.path() / "vit", vit.model, vit.parameters, options(flavour));
    const ImageWeightsRead read =
        read_image_weights(folder.path() / "vit", other.model, other.parameters);
    EXPECT_EQ(read.flavour, flavour);
    EXPECT_EQ(read.holds, "a ViT of width 32 with 3 blocks and patches of 8");
    EXPECT_TRUE(read.notes.empty()) << read.notes.front();
    expect_equal(other.parameters, vit.parameters);

    const TinyResNet resnet;
    TinyResNet other_resnet(7, 9);
    write_image_model(folder.path() / "resnet", *resnet.model, resnet.parameters, options(flavour));
    const ImageWeightsRead read_resnet =
        read_image_weights(folder.path() / "resnet", *other_resnet.model, other_resnet.parameters);
    EXPECT_EQ(read_resnet.holds, "a ResNet-18");
    EXPECT_TRUE(read_resnet.notes.empty());
    expect_equal(other_resnet.parameters, resnet.parameters);
  }
}

// config.json is another's file: its numbers are looked at before a network is made of them.
TEST(ImageWeights, AFolderOfAnImpossibleWidthIsRefused) {
  TemporaryFolder folder;
  auto read = [&](const std::string& more) {
    write_file(
        folder.path() / "config.json",
        R"({"model_type": "resnet", "layer_type": "basic", "depths": [2, 2, 2, 2], )" + more + "}");
    return read_classifier_folder(folder.path()).model.width;
  };
  EXPECT_EQ(read(R"("embedding_size": 32, "hidden_sizes": [32, 64, 128, 256])"), 32);
  for (const char* width : {"0", "-32", "4611686018427387904"}) {
    EXPECT_ERROR(read(fmt::format(R"("embedding_size": {0}, "hidden_sizes": [{0}])", width)),
                 DataError, "a ResNet of width");
  }
  EXPECT_ERROR(read(R"("embedding_size": 32, "hidden_sizes": [32, 64, 100, 256])"), DataError,
               "whose stages do not double their width from 32 on (32, 64, 100, 256)");
  EXPECT_ERROR(read(R"("embedding_size": "wide")"), DataError, "damaged");
}

std::set<std::string> names_of(const std::vector<WeightPlace>& places) {
  std::set<std::string> names;
  for (const WeightPlace& place : places) {
    EXPECT_TRUE(names.insert(place.theirs).second) << place.theirs;
  }
  return names;
}

void add_norm(const std::string& name, bool batch, std::set<std::string>& out) {
  for (const char* kind : {".weight", ".bias"}) out.insert(name + kind);
  if (!batch) return;
  for (const char* kind : {".running_mean", ".running_var"}) out.insert(name + kind);
}

// torchvision/models/resnet.py: conv1, bn1, layerN of BasicBlock or Bottleneck, fc.
TEST(ImageWeights, HaveTorchvisionsNamesForResNets) {
  for (const auto& [name, parts, depths] :
       {std::tuple{"resnet34", 2, std::vector<int>{3, 4, 6, 3}},
        std::tuple{"resnet50", 3, std::vector<int>{3, 4, 6, 3}}}) {
    std::set<std::string> expected = {"conv1.weight", "fc.weight", "fc.bias"};
    add_norm("bn1", true, expected);
    for (int stage = 0; stage < 4; ++stage) {
      for (int i = 0; i < depths[stage]; ++i) {
        const std::string block = fmt::format("layer{}.{}.", stage + 1, i);
        for (int part = 1; part <= parts; ++part) {
          expected.insert(block + fmt::format("conv{}.weight", part));
          add_norm(block + fmt::format("bn{}", part), true, expected);
        }
        if (i > 0 || (stage == 0 && parts == 2)) continue;
        expected.insert(block + "downsample.0.weight");
        add_norm(block + "downsample.1", true, expected);
      }
    }
    Parameters parameters;
    ImageModelConfig config;
    config.name = name;
    make_image_model(config, 10, 224, parameters);
    EXPECT_EQ(names_of(weight_places(WeightFlavour::kTorchvision, parameters)), expected);
    EXPECT_EQ(names_of(weight_places(WeightFlavour::kTimm, parameters)), expected);
  }
}

// timm/models/vision_transformer.py; torchvision/models/vision_transformer.py, whose self-attention
// is torch.nn.MultiheadAttention and whose feed-forward block is an MLP with layers 0 and 3.
TEST(ImageWeights, HaveTimmsAndTorchvisionsNamesForViTs) {
  std::set<std::string> timm = {"cls_token", "pos_embed"}, torchvision = {"class_token"};
  torchvision.insert("encoder.pos_embedding");
  auto both = [&](const std::string& of_timm, const std::string& of_torchvision) {
    add_norm(of_timm, false, timm);
    add_norm(of_torchvision, false, torchvision);
  };
  both("patch_embed.proj", "conv_proj");
  both("norm", "encoder.ln");
  both("head", "heads.head");
  for (int i = 0; i < 3; ++i) {
    const std::string a = fmt::format("blocks.{}.", i);
    const std::string b = fmt::format("encoder.layers.encoder_layer_{}.", i);
    both(a + "norm1", b + "ln_1");
    both(a + "attn.proj", b + "self_attention.out_proj");
    both(a + "norm2", b + "ln_2");
    both(a + "mlp.fc1", b + "mlp.0");
    both(a + "mlp.fc2", b + "mlp.3");
    add_norm(a + "attn.qkv", false, timm);
    torchvision.insert(b + "self_attention.in_proj_weight");
    torchvision.insert(b + "self_attention.in_proj_bias");
  }
  const TinyVit vit;
  EXPECT_EQ(names_of(weight_places(WeightFlavour::kTimm, vit.parameters)), timm);
  EXPECT_EQ(names_of(weight_places(WeightFlavour::kTorchvision, vit.parameters)), torchvision);
  for (const WeightPlace& place : weight_places(WeightFlavour::kTimm, vit.parameters)) {
    if (place.ours == "cls_token") {
      EXPECT_EQ(place.shape, (std::vector<int64_t>{1, 1, 32}));
    } else if (place.ours == "pos_embed") {
      EXPECT_EQ(place.shape, (std::vector<int64_t>{1, 17, 32}));
    } else if (place.ours == "patch_embed.proj.weight") {
      EXPECT_EQ(place.shape, (std::vector<int64_t>{32, 3, 8, 8}));
    }
  }
}

TEST(ImageWeights, AreFoundBehindPrefixesAndOldNames) {
  TemporaryFolder folder;
  const TinyVit vit;
  TinyVit other({}, 7, 32, kTinyVit, 9);
  write_image_model(folder.path() / "vit", vit.model, vit.parameters,
                    options(WeightFlavour::kTorchvision));
  const fs::path old = folder.path() / "old.safetensors";
  rewrite(folder.path() / "vit/model.safetensors", old, [](std::string name) {
    for (const auto& [now, before] :
         {std::pair{".mlp.0.", ".mlp.linear_1."}, std::pair{".mlp.3.", ".mlp.linear_2."}}) {
      const std::size_t at = name.find(now);
      if (at != std::string::npos) name.replace(at, 7, before);
    }
    return "module." + name;
  });
  EXPECT_EQ(image_weights_file(old), old);
  EXPECT_EQ(read_image_weights(old, other.model, other.parameters).flavour,
            WeightFlavour::kTorchvision);
  expect_equal(other.parameters, vit.parameters);

  // A ViTModel: without "vit.", without a head, with a pooler.
  TinyVit third({}, 7, 32, kTinyVit, 11);
  write_image_model(folder.path() / "hf", vit.model, vit.parameters,
                    options(WeightFlavour::kHuggingFace));
  const fs::path base = folder.path() / "base.safetensors";
  rewrite(folder.path() / "hf/model.safetensors", base, [](const std::string& name) -> std::string {
    if (name == "classifier.weight") return "pooler.dense.weight";
    return name == "classifier.bias" ? "pooler.dense.bias" : name.substr(4);
  });
  const ImageWeightsRead read = read_image_weights(base, third.model, third.parameters);
  ASSERT_EQ(read.notes.size(), 1u);
  EXPECT_NE(read.notes[0].find("no last layer there"), std::string::npos) << read.notes[0];
  expect_equal(third.parameters, vit.parameters, false);
  EXPECT_FALSE(torch::equal(third.parameters.find("head.weight")->value,
                            vit.parameters.find("head.weight")->value));
}

TEST(ImageWeights, KeepTheOwnHeadForOtherClassesAndSaySo) {
  for (WeightFlavour flavour : kAll) {
    TemporaryFolder folder;
    const TinyVit vit;
    TinyVit other({}, 5, 32, kTinyVit, 9);
    const Tensor head = other.parameters.find("head.weight")->value.clone();
    write_image_model(folder.path() / "vit", vit.model, vit.parameters, options(flavour));
    const ImageWeightsRead read =
        read_image_weights(folder.path() / "vit", other.model, other.parameters);
    ASSERT_EQ(read.notes.size(), 1u);
    EXPECT_EQ(read.notes[0], "last layer for 7 classes there, 5 here: as initialised");
    expect_equal(other.parameters, vit.parameters, false);
    EXPECT_TRUE(torch::equal(other.parameters.find("head.weight")->value, head));
  }
}

using Names = std::vector<std::string>;

TEST(ImageHead, FollowsTheNamesOfItsClasses) {
  const Names here = {"cat", "dog", "fox"};
  const HeadPlan same = plan_head(here, here, "auto");
  EXPECT_TRUE(!same.fresh && same.rows.empty() && same.note.empty());
  const HeadPlan turned = plan_head({"fox", "cat", "dog"}, here, "auto");
  EXPECT_EQ(turned.rows, (std::vector<int64_t>{1, 2, 0}));
  EXPECT_EQ(turned.note, "last layer kept: the same 3 classes in another order");
  const HeadPlan numbers = plan_head({"LABEL_0", "LABEL_1", "LABEL_2"}, here, "auto");
  EXPECT_FALSE(numbers.fresh);
  EXPECT_NE(numbers.note.find("model.head=new begins it anew"), std::string::npos);
  const HeadPlan other = plan_head({"cat", "cow", "fox"}, here, "auto");
  EXPECT_TRUE(other.fresh);
  EXPECT_NE(other.note.find("class 1 is \"cow\" there, \"dog\" here"), std::string::npos);
  EXPECT_FALSE(plan_head({"cat", "cow", "fox"}, here, "keep").fresh);
  EXPECT_TRUE(plan_head(here, here, "new").fresh);
  // Of another number of classes the shapes tell.
  EXPECT_FALSE(plan_head({"cat"}, here, "keep").fresh);
}

TEST(ImageWeights, TakeTheRowsOfTheHeadInTheOrderOfTheClasses) {
  TemporaryFolder folder;
  const TinyVit vit({}, 3);
  TinyVit other({}, 3, 32, kTinyVit, 9);
  write_image_model(folder.path() / "vit", vit.model, vit.parameters,
                    options(WeightFlavour::kHuggingFace, 3));
  const HeadPlan turned{.fresh = false, .rows = {1, 2, 0}, .note = "turned"};
  const ImageWeightsRead read =
      read_image_weights(folder.path() / "vit", other.model, other.parameters, turned);
  EXPECT_EQ(read.notes, Names{"turned"});
  for (const char* name : {"head.weight", "head.bias"}) {
    const Tensor there = vit.parameters.find(name)->value,
                 here = other.parameters.find(name)->value;
    for (int64_t label = 0; label < 3; ++label) {
      EXPECT_TRUE(torch::equal(here[label], there[(label + 1) % 3])) << name << label;
    }
  }
  TinyVit fresh({}, 3, 32, kTinyVit, 9);
  const Tensor own = fresh.parameters.find("head.weight")->value.clone();
  read_image_weights(folder.path() / "vit", fresh.model, fresh.parameters, {.fresh = true});
  EXPECT_TRUE(torch::equal(fresh.parameters.find("head.weight")->value, own));
  expect_equal(fresh.parameters, vit.parameters, false);
}

TEST(ImageWeights, InterpolatePositionsOfAnotherGrid) {
  TemporaryFolder folder;
  const TinyVit vit;
  TinyVit other({}, 7, 48, kTinyVit, 9);
  write_image_model(folder.path() / "vit", vit.model, vit.parameters,
                    options(WeightFlavour::kTimm));
  const ImageWeightsRead read =
      read_image_weights(folder.path() / "vit", other.model, other.parameters);
  ASSERT_EQ(read.notes.size(), 1u);
  EXPECT_EQ(read.notes[0], "positions of 4 x 4 patches interpolated to 6 x 6");
  const Tensor from = vit.parameters.find("pos_embed")->value;
  const Tensor to = other.parameters.find("pos_embed")->value;
  EXPECT_TRUE(torch::equal(to[0], from[0]));
  EXPECT_TRUE(torch::allclose(to.narrow(0, 1, 36), resize_grid(from.narrow(0, 1, 16), 4, 6, 6)));
}

TEST(ImageWeights, ReadSixteenBits) {
  TemporaryFolder folder;
  const TinyVit vit;
  TinyVit other({}, 7, 32, kTinyVit, 9);
  ImageExport low = options(WeightFlavour::kHuggingFace);
  low.precision = "bf16";
  const int64_t bytes = write_image_model(folder.path() / "low", vit.model, vit.parameters, low);
  EXPECT_LT(bytes, vit.parameters.count() * 3);
  read_image_weights(folder.path() / "low", other.model, other.parameters);
  for (const ParameterRef& p : vit.parameters.list()) {
    const Tensor read = other.parameters.find(p->name)->value;
    const bool rounded = p->shape.size() > 1 || p->name == "cls_token";
    EXPECT_TRUE(torch::equal(read, rounded ? p->low.to(torch::kFloat) : p->value)) << p->name;
  }
}

TEST(ImageWeights, RefuseAnotherNetworkAndChangeNothing) {
  TemporaryFolder folder;
  const TinyVit vit;
  const TinyResNet resnet;
  auto written = [&](const char* name, WeightFlavour flavour) {
    const fs::path path = folder.path() / name;
    if (std::string(name).starts_with("vit")) {
      write_image_model(path, vit.model, vit.parameters, options(flavour));
    } else {
      write_image_model(path, *resnet.model, resnet.parameters, options(flavour));
    }
    return path;
  };
  const fs::path hf = written("vit-hf", WeightFlavour::kHuggingFace);
  const fs::path timm = written("vit-timm", WeightFlavour::kTimm);
  const fs::path torchvision = written("resnet", WeightFlavour::kTorchvision);
  auto refused = [&](const fs::path& source, ImageModel& model, Parameters& parameters,
                     const std::string& words) {
    const Tensor before = parameters.values().clone();
    EXPECT_ERROR(read_image_weights(source, model, parameters), DataError, words);
    EXPECT_TRUE(torch::equal(parameters.values(), before));
  };
  TinyVit deep({}, 7, 32, {32, 4, 4, 48, 8}), flat({}, 7, 32, {32, 2, 4, 48, 8});
  TinyVit wide({}, 7, 32, {64, 3, 4, 48, 8}), heads({}, 7, 32, {32, 3, 2, 48, 8});
  refused(timm, deep.model, deep.parameters, "blocks.3.norm1.weight is not there");
  refused(timm, flat.model, flat.parameters, "blocks.2.");
  refused(timm, wide.model, wide.parameters, "cls_token is [1, 1, 32], here [1, 1, 64]");
  refused(timm, wide.model, wide.parameters, "it holds a ViT of width 32 with 3 blocks");
  refused(hf, heads.model, heads.parameters, "num_attention_heads is 4, here 2");
  TinyResNet other(7, 2, "resnet34"), bottleneck(7, 2, "resnet50"),
      cifar(7, 2, "resnet18", "cifar");
  refused(torchvision, *other.model, other.parameters, "layer1.2.conv1.weight is not there");
  refused(torchvision, *bottleneck.model, bottleneck.parameters,
          "layer1.0.conv1.weight is [64, 64, 3, 3], here [64, 64, 1, 1]");
  refused(torchvision, *cifar.model, cifar.parameters,
          "conv1.weight is [64, 3, 7, 7], here [64, 3, 3, 3]");
  refused(torchvision, flat.model, flat.parameters, "holds a ResNet-18, not a ViT");
  write_tensor_file(folder.path() / "none.safetensors", {});
  EXPECT_TRUE(image_weights_file(folder.path() / "none.safetensors").empty());
  EXPECT_TRUE(image_weights_file(folder.path() / "absent").empty());
  EXPECT_ERROR(read_image_weights(folder.path() / "none.safetensors", flat.model, flat.parameters),
               DataError, "neither a ResNet nor a ViT");
}

TEST(ImageExport, RefusesWhatAFlavourHasNot) {
  TemporaryFolder folder;
  ImageModelConfig config;
  config.pool = "mean";
  const TinyVit mean(config);
  for (WeightFlavour flavour : {WeightFlavour::kTorchvision, WeightFlavour::kHuggingFace}) {
    EXPECT_ERROR(
        write_image_model(folder.path() / "a", mean.model, mean.parameters, options(flavour)),
        ConfigError, "expected timm");
  }
  TinyResNet cifar(7, 2, "resnet18", "cifar");
  EXPECT_ERROR(write_image_model(folder.path() / "a", *cifar.model, cifar.parameters,
                                 options(WeightFlavour::kHuggingFace)),
               ConfigError, "expected torchvision");
  EXPECT_FALSE(fs::exists(folder.path() / "a"));
  write_image_model(folder.path() / "a", mean.model, mean.parameters,
                    options(WeightFlavour::kTimm));
  EXPECT_ERROR(write_image_model(folder.path() / "a", mean.model, mean.parameters,
                                 options(WeightFlavour::kTimm)),
               ConfigError, "already holds a model (model.safetensors)");
  EXPECT_ERROR(flavour_named("tim"), ConfigError, "did you mean timm");
  const auto json = nlohmann::json::parse(read_file(folder.path() / "a/config.json"));
  EXPECT_EQ(json.at("global_pool"), "avg");
  EXPECT_EQ(json.at("model_args").at("img_size"), 32);
}

}  // namespace
}  // namespace lockstep
