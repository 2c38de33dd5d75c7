// Networks for images taken away in each format, and begun from again.
#include <gtest/gtest.h>

#include "support/tiny_images.h"

namespace lockstep {
namespace {

const char* const kVit = "model.name=vit_ti16 model.patch=8 training.steps=2";

class ImageWeightsCommands : public TinyImageRuns {
 protected:
  ProgramResult export_run(const std::string& name, const std::string& format,
                           const std::string& words = "") const {
    return run_lockstep(fmt::format("export {} --format {} --out {} {}", run(name).string(), format,
                                    exported(name, format).string(), words));
  }
  fs::path exported(const std::string& name, const std::string& format) const {
    return run(name + "-" + format);
  }
  double first_loss(const std::string& name) const {
    return metrics_of(run(name), "step")[0].at("train/loss");
  }
};

TEST_F(ImageWeightsCommands, ATrainingBeginsWithWhatAnyFormatHolds) {
  const ProgramResult trained = train("vit", 1, kVit);
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  ASSERT_EQ(
      train("from-run", 1, std::string(kVit) + " run.load_model=" + run("vit").string()).exit_code,
      0);
  for (const char* format : {"huggingface", "timm", "torchvision"}) {
    const ProgramResult written = export_run("vit", format);
    ASSERT_EQ(written.exit_code, 0) << written.errors;
    EXPECT_NE(written.output.find("MB in fp32"), std::string::npos) << written.output;
    const ProgramResult again =
        train(format, 1, std::string(kVit) + " run.load_model=" + exported("vit", format).string());
    ASSERT_EQ(again.exit_code, 0) << again.errors;
    EXPECT_NE(
        again.errors.find(fmt::format("a ViT of width 192 with 12 blocks and patches of 8 "
                                      "({} tensors, names of {}) from",
                                      std::string(format) == "huggingface" ? 200 : 152, format)),
        std::string::npos)
        << again.errors;
    EXPECT_EQ(first_loss(format), first_loss("from-run")) << format;
  }
  const ProgramResult twice = export_run("vit", "timm");
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_NE(twice.errors.find("already holds a model"), std::string::npos) << twice.errors;
}

TEST_F(ImageWeightsCommands, AnExportedModelClassifiesAndIsEvaluatedAsItsRun) {
  struct Case {
    const char *name, *words, *format;
  };
  for (const Case& c :
       {Case{"taken-vit", kVit, "huggingface"},
        Case{"taken-mean", "model.name=vit_ti16 model.patch=8 model.pool=mean training.steps=2",
             "timm"},
        Case{"taken-resnet", "training.steps=2", "torchvision"},
        Case{"taken-narrow", "model.width=16 training.steps=2", "torchvision"},
        Case{"taken-narrow-imagenet", "model.width=16 model.stem=imagenet training.steps=2",
             "huggingface"}}) {
    ASSERT_EQ(train(c.name, 1, c.words).exit_code, 0);
    const ProgramResult written = export_run(c.name, c.format);
    ASSERT_EQ(written.exit_code, 0) << written.errors;
    const std::string images = (data() / "val").string();
    auto classified = [&](const fs::path& model) {
      return run_lockstep(fmt::format("classify {} {}", model.string(), images));
    };
    const ProgramResult own = classified(run(c.name));
    ASSERT_EQ(own.exit_code, 0) << own.errors;
    const ProgramResult taken = classified(exported(c.name, c.format));
    ASSERT_EQ(taken.exit_code, 0) << taken.errors;
    EXPECT_EQ(taken.output, own.output) << c.name;
  }
}

TEST_F(ImageWeightsCommands, OtherClassesHaveAHeadOfTheirOwn) {
  ASSERT_EQ(train("four", 1, kVit).exit_code, 0);
  ASSERT_EQ(export_run("four", "huggingface", "--precision bf16").exit_code, 0);
  write_tiny_images(run("three-classes"), {.classes = 3});
  const ProgramResult other =
      train("three", 1,
            fmt::format("{} images.data={} run.load_model={}", kVit, run("three-classes").string(),
                        exported("four", "huggingface").string()));
  ASSERT_EQ(other.exit_code, 0) << other.errors;
  EXPECT_NE(other.errors.find("last layer for 4 classes there, 3 here: as initialised"),
            std::string::npos)
      << other.errors;
}

TEST_F(ImageWeightsCommands, AnotherNetworkIsRefused) {
  ASSERT_EQ(train("resnet", 1, "training.steps=1").exit_code, 0);
  const ProgramResult cifar = export_run("resnet", "timm");
  EXPECT_EQ(cifar.exit_code, 2);
  EXPECT_NE(cifar.errors.find("model.stem = cifar"), std::string::npos) << cifar.errors;
  ASSERT_EQ(train("narrow", 1, "model.width=16 model.stem=imagenet training.steps=1").exit_code, 0);
  const ProgramResult narrow = export_run("narrow", "timm");
  EXPECT_EQ(narrow.exit_code, 2);
  EXPECT_NE(narrow.errors.find("model.width = 16: the ResNets of timm begin with 64 channels"),
            std::string::npos)
      << narrow.errors;
  ASSERT_EQ(export_run("resnet", "torchvision").exit_code, 0);
  const std::string from = " run.load_model=" + exported("resnet", "torchvision").string();
  const ProgramResult vit = train("no-vit", 1, kVit + from);
  EXPECT_EQ(vit.exit_code, 3);
  EXPECT_NE(vit.errors.find("holds a ResNet-18, not a ViT"), std::string::npos) << vit.errors;
  const ProgramResult deep = train("no-deep", 1, "model.name=resnet34" + from);
  EXPECT_EQ(deep.exit_code, 3);
  EXPECT_NE(deep.errors.find("the weights of another network: layer1.2.conv1.weight is not there"),
            std::string::npos)
      << deep.errors;
  write_file(run("model.pth"), "PK");
  const ProgramResult pickle = train("no-pickle", 1, "run.load_model=" + run("model.pth").string());
  EXPECT_EQ(pickle.exit_code, 3);
  EXPECT_NE(pickle.errors.find("a file of torch.save, expected safetensors"), std::string::npos)
      << pickle.errors;
}

}  // namespace
}  // namespace lockstep
