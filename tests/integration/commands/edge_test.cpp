// lockstep-translate and the library in C against lockstep translate, on exported runs.
#include <gtest/gtest.h>

#include "support/tiny_runs.h"

namespace lockstep {
namespace {

const std::string kTranslate = std::string(LOCKSTEP_PROGRAM) + "-translate";

class EdgeCommands : public TinyRuns {
 protected:
  void SetUp() override {
    TinyRuns::SetUp();
    if (!fs::exists(kTranslate)) GTEST_SKIP() << "not built: no source of SentencePiece";
  }
  std::string path(const std::string& name) const { return run(name).string(); }
  std::string source() const { return (folder_->path() / "test.en").string(); }

  // What a program prints for the test part; fails the test when it fails.
  std::string printed(const std::string& program, const std::string& words) const {
    const ProgramResult result = run_program(program, words);
    EXPECT_EQ(result.exit_code, 0) << words << ": " << result.errors;
    return result.output;
  }
  std::string by_lockstep(const std::string& model, const std::string& words) const {
    return printed(LOCKSTEP_PROGRAM, fmt::format("translate {} --n-best 3 --input {} {}",
                                                 path(model), source(), words));
  }
  std::string by_edge(const std::string& model, const std::string& words = "") const {
    return printed(kTranslate,
                   fmt::format("{} --n-best 3 --input {} {}", path(model), source(), words));
  }
  void take_away(const std::string& name, const std::string& format, const std::string& precision,
                 const std::string& to) const {
    printed(LOCKSTEP_PROGRAM, fmt::format("export {} --format {} --precision {} --out {}",
                                          path(name), format, precision, path(to)));
  }
};

TEST_F(EdgeCommands, TranslateAsTheRunDoesInEveryVariant) {
  struct Variant {
    const char *name, *words;
  };
  for (const Variant& v :
       {Variant{"plain", "training.steps=60"},
        Variant{"other", "model.norm=post model.activation=gelu model.positions=halves"},
        Variant{"zero", "model.start=zero model.attention_bias=false"}}) {
    SCOPED_TRACE(v.name);
    const ProgramResult trained = train(v.name, 1, v.words);
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
    const std::string edge = std::string(v.name) + "-edge";
    take_away(v.name, "edge", "fp32", edge);
    const std::string want = by_lockstep(v.name, "decoding.precision=fp32");
    ASSERT_GT(want.size(), 500u);
    EXPECT_EQ(by_edge(edge), want);
    EXPECT_EQ(by_edge(edge, "--threads 1 --chunk 7"),
              by_lockstep(v.name, "decoding.precision=fp32 --chunk 7"));
    EXPECT_EQ(by_edge(edge, "--beam 6 --length-penalty 0 decoding.stop=first"),
              by_lockstep(v.name,
                          "decoding.precision=fp32 decoding.beam_size=6 "
                          "decoding.length_penalty=0 decoding.stop=first"));
  }
}

TEST_F(EdgeCommands, TranslateInBf16AndInt8AsFoldersOfThatPrecision) {
  ASSERT_EQ(train("low", 1, "training.steps=60").exit_code, 0);
  for (const char* precision : {"bf16", "int8"}) {
    const std::string edge = std::string("low-edge-") + precision;
    const std::string folder = std::string("low-folder-") + precision;
    take_away("low", "edge", precision, edge);
    take_away("low", "huggingface", precision, folder);
    EXPECT_EQ(by_edge(edge), by_lockstep(folder, std::string("decoding.precision=") + precision));
  }
}

TEST_F(EdgeCommands, NeedNothingOfTorchAndAFewMegabytes) {
  const std::string libraries = printed("ldd", kTranslate);
  EXPECT_NE(libraries.find("libstdc++"), std::string::npos) << libraries;
  for (const char* foreign : {"torch", "c10", "gomp", "sentencepiece", "protobuf", "curl", "ssl",
                              "crypto", "icu", "libz"}) {
    EXPECT_EQ(libraries.find(foreign), std::string::npos) << libraries;
  }
  const std::string stripped = path("stripped");
  printed("strip", fmt::format("-o {} {}", stripped, kTranslate));
  EXPECT_LT(fs::file_size(stripped), 8'000'000u);
}

TEST_F(EdgeCommands, ServeAProgramInC) {
  ASSERT_EQ(train("c", 1).exit_code, 0);
  take_away("c", "edge", "fp32", "c-edge");
  const std::string source_folder = LOCKSTEP_SOURCE, example = path("example");
  const fs::path library = fs::path(kTranslate).parent_path() / "liblockstep-translate.a";
  const ProgramResult compiled = run_program(
      "cc", fmt::format("-std=c99 -Wall -Wextra -Werror -pedantic -I {0}/src "
                        "{0}/docs/examples/translate.c {1} -lstdc++ -lm -lpthread -o {2}",
                        source_folder, library.string(), example));
  ASSERT_EQ(compiled.exit_code, 0) << compiled.errors;
  const std::string lines = fmt::format("-c '{} {} < {}'", example, path("c-edge"), source());
  EXPECT_EQ(printed("sh", lines),
            printed(kTranslate, fmt::format("{} --input {}", path("c-edge"), source())));
  const ProgramResult absent = run_program(example, path("nothing"));
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_NE(absent.errors.find("nothing: no such folder"), std::string::npos) << absent.errors;
}

}  // namespace
}  // namespace lockstep
