// `lockstep demo` as a user runs it, on packages of a mirror on this machine.
#include <gtest/gtest.h>

#include <string>

#include "support/debian_mirror.h"
#include "support/local_server.h"
#include "support/mo_writer.h"
#include "support/program.h"

namespace lockstep {
namespace {

// Words of four to nine letters that no language has, so that there is a subword for each of 8,000.
class Words {
 public:
  std::string sentence(int words) {
    std::string out;
    for (int i = 0; i < words; ++i) {
      if (i > 0) out += ' ';
      for (uint32_t letters = 4 + next() % 6; letters > 0; --letters) {
        out += static_cast<char>('a' + next() % 26);
      }
    }
    return out;
  }

 private:
  uint32_t next() {
    state_ = state_ * 1664525 + 1013904223;
    return state_ >> 16;
  }
  uint32_t state_ = 1;
};

std::string catalogue(Words& words, int pairs) {
  std::map<std::string, std::string> sorted;
  for (int i = 0; i < pairs; ++i) sorted[words.sentence(4 + i % 8)] = words.sentence(4 + i % 7);
  testing::MoStrings strings{testing::mo_header()};
  strings.insert(strings.end(), sorted.begin(), sorted.end());
  return testing::mo_bytes(strings);
}

class Demo : public ::testing::Test {
 protected:
  Demo() {
    testing::DebianMirrorFolder mirror(served(), "bookworm");
    Words words;
    for (const char* name : {"libreoffice-l10n-de", "gcc-12-locales"}) {
      mirror.add(name, {{"./usr/share/locale/de/LC_MESSAGES/a.mo", catalogue(words, 3000)}});
    }
    mirror.publish();
    fs::create_directories(work());
  }
  fs::path served() const { return folder_.path() / "served"; }
  fs::path work() const { return folder_.path() / "work"; }
  ProgramResult demo(const std::string& words) const {
    return run_lockstep("demo " + words, "cd '" + work().string() + "' &&");
  }

  TemporaryFolder folder_;
};

TEST_F(Demo, GoesFromPackagesToTranslations) {
  LocalServer server(served());
  const std::string small =
      " training.steps=4 model.d_model=32 model.feed_forward=32 model.encoder_layers=1 "
      "model.decoder_layers=1 evaluation.every=4 evaluation.limit=4 checkpoint.every=4 "
      "decoding.beam_size=1 decoding.max_length_extra=2 run.device=cpu";
  ProgramResult result = demo("--mirror " + server.url() + small);
  ASSERT_EQ(result.exit_code, 0) << result.output << result.errors;
  for (const char* expected :
       {"== corpus: data/catalogs", "vocabulary            8,000", "== training",
        "== BLEU on sentences that were not in training", "== 5 of them", "\n  source     ",
        "\n  reference  ", "\n  lockstep   ", "run folder:   runs/quickstart "}) {
    EXPECT_NE(result.output.find(expected), std::string::npos) << expected << result.output;
  }
  EXPECT_EQ(read_lines(work() / "runs/quickstart/five.out").size(), 5u);
  const std::size_t asked = server.requests().size();
  EXPECT_EQ(asked, 4u);               // Release, index, two packages
  ProgramResult again = demo(small);  // the corpus is there: another mirror is not asked
  ASSERT_EQ(again.exit_code, 0) << again.output << again.errors;
  EXPECT_NE(again.output.find("already holds this corpus"), std::string::npos);
  EXPECT_NE(again.output.find("run folder:   runs/quickstart-2 "), std::string::npos);
  ProgramResult taken = demo("runs/quickstart");
  EXPECT_EQ(taken.exit_code, 2);
  EXPECT_NE(taken.errors.find("runs/quickstart holds a run already"), std::string::npos);
}

TEST_F(Demo, EndsWithTheCodeOfTheStepThatFailed) {
  ProgramResult offline = demo("--mirror http://127.0.0.1:1");
  EXPECT_EQ(offline.exit_code, 4);
  EXPECT_NE(offline.errors.find("dists/bookworm/Release: not fetched after 3 attempts"),
            std::string::npos)
      << offline.errors;
  EXPECT_FALSE(fs::exists(work() / "runs"));
  LocalServer server(served());
  ProgramResult wrong = demo("--mirror " + server.url() + " optimizer.learning=1");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.errors.find("optimizer.learning"), std::string::npos) << wrong.errors;
}

}  // namespace
}  // namespace lockstep
