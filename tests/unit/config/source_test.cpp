#include "config/source.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

struct Small {
  double lr = 2.0;
  int64_t steps = 10;
  std::string device = "auto";
  bool fast = true;
  std::vector<std::string> hosts, plain;
  void describe(Fields& f) {
    f("lr", &lr, Above{0}, "peak learning rate");
    f("steps", &steps, AtLeast{1}, "how many");
    f("device", &device, OneOf{{"auto", "cpu", "cuda"}}, "where");
    f("fast", &fast, Any{}, "own kernels");
    f("hosts", &hosts, Any{}, "machines");
    f("plain", &plain, OneOf{{"linear", "attention"}}, "not fused");
  }
};

struct Outer {
  Small optimizer;
  void describe(Fields& f) { f.section("optimizer", optimizer, "how to learn"); }
};

std::string error_of(const std::string& toml, const std::vector<std::string>& words = {}) {
  try {
    ConfigSource source = ConfigSource::from_text(toml, "nmt.toml");
    for (const std::string& word : words) source.override_with(word);
    Outer config;
    source.read("", config);
    source.finish();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ConfigSource, ReadsValuesAndWordsOverrideTheFile) {
  ConfigSource source = ConfigSource::from_text(
      "[optimizer]\nlr = 1\nsteps = 20\nhosts = [\"a\", \"b\"]\n", "nmt.toml");
  source.override_with("optimizer.lr=1e-3");
  source.override_with("optimizer.device=cpu");
  Outer config;
  source.read("", config);
  source.finish();
  EXPECT_EQ(config.optimizer.lr, 1e-3);
  EXPECT_EQ(config.optimizer.steps, 20);
  EXPECT_EQ(config.optimizer.device, "cpu");
  EXPECT_TRUE(config.optimizer.fast);
  EXPECT_EQ(config.optimizer.hosts, (std::vector<std::string>{"a", "b"}));
}

TEST(ConfigSource, NamesPlaceAndExpectationOfAWrongType) {
  EXPECT_EQ(error_of("[optimizer]\n\nlr = \"fast\"\n"),
            "nmt.toml:3:6: optimizer.lr: expected a number > 0, got the string \"fast\"");
}

TEST(ConfigSource, SuggestsTheNearestKeyAndName) {
  EXPECT_EQ(error_of("[optimizer]\nstpes = 3\n"),
            "nmt.toml:2:9: optimizer.stpes: unknown key; did you mean optimizer.steps?");
  EXPECT_EQ(error_of("", {"optimizer.device=cdua"}),
            "command line: optimizer.device: expected one of auto, cpu, cuda, got the string "
            "\"cdua\"; did you mean cuda?");
}

TEST(ConfigSource, ReportsAllErrorsAtOnce) {
  std::string error = error_of("[optimizer]\nlr = -1\nsteps = 0\nfast = 3\n");
  EXPECT_NE(error.find("optimizer.lr: expected a number > 0, got -1"), std::string::npos) << error;
  EXPECT_NE(error.find("optimizer.steps: expected a whole number >= 1, got 0"), std::string::npos);
  EXPECT_NE(error.find("optimizer.fast: expected true or false, got 3"), std::string::npos);
}

TEST(ConfigSource, NamesTheLineOfTomlThatDoesNotParse) {
  EXPECT_EQ(error_of("[optimizer\n").substr(0, 12), "nmt.toml:1:1");
}

TEST(ConfigSource, TakesWholeNumbersWrittenAsFloats) {
  EXPECT_EQ(error_of("", {"optimizer.steps=1e3"}), "");
  EXPECT_NE(error_of("", {"optimizer.steps=1.5"}), "");
}

TEST(TomlWriter, WritesWhatReadsBackEqual) {
  Outer config;
  config.optimizer.lr = 0.1;
  config.optimizer.hosts = {"a \"b\"", "c\\d"};
  TomlWriter writer;
  config.describe(writer);
  ConfigSource source = ConfigSource::from_text(writer.text(), "saved.toml");
  Outer read;
  source.read("", read);
  source.finish();
  EXPECT_EQ(read.optimizer.lr, 0.1);
  EXPECT_EQ(read.optimizer.hosts, config.optimizer.hosts);
}

TEST(ConfigSource, ChecksEveryNameOfAListAndSuggestsForTheFirstBadOne) {
  EXPECT_EQ(error_of("[optimizer]\nplain = [\"attention\", \"linear\"]"), "");
  std::string error = error_of("[optimizer]\nplain = [\"linear\", \"atention\"]");
  EXPECT_NE(error.find("nmt.toml:2"), std::string::npos) << error;
  EXPECT_NE(error.find("a list of some of linear, attention"), std::string::npos) << error;
  EXPECT_NE(error.find("got a list with \"atention\"; did you mean attention?"), std::string::npos)
      << error;
}

}  // namespace
}  // namespace lockstep
