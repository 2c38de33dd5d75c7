#include "config/fields.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

struct DataPart {
  std::string corpus = "data/nmt", split = "train";
  std::string unset;
  void describe(Fields& f) {
    f("corpus", &corpus, InputPath{}, "a folder");
    f("split", &split, Any{}, "of it");
    f("unset", &unset, InputPath{}, "another folder");
  }
};

struct Whole {
  DataPart data;
  std::string folder = "runs/nmt", model = "weights";
  void describe(Fields& f) {
    f("folder", &folder, Any{}, "is written");
    f.section("data", data, "what it learns from");
    f("model", &model, InputPath{}, "is read");
  }
};

TEST(Fields, InputPathsAreTheFieldsThatSayThatTheyAreReadAndAreSet) {
  Whole config;
  InputPaths paths;
  config.describe(paths);
  ASSERT_EQ(paths.entries().size(), 2u);
  EXPECT_EQ(paths.entries()[0].key, "data.corpus");
  EXPECT_EQ(paths.entries()[0].value, "data/nmt");
  EXPECT_EQ(paths.entries()[1].key, "model");
}

}  // namespace
}  // namespace lockstep
