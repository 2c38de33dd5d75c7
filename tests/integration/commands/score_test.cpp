// lockstep score against the command of the sacreBLEU package: the same files, the same bytes out.
#include <gtest/gtest.h>

#include "base/text.h"
#include "support/program.h"
#include "support/python.h"
#include "support/random_text.h"

namespace lockstep {
namespace {

// Three systems and three references of 60 lines, named h1 to h3 and r1 to r3.
void write_texts(const fs::path& folder) {
  RandomText random(2002);
  std::vector<std::string> truth;
  for (int i = 0; i < 60; ++i) {
    // One line each: what holds a line end or what Python takes for one is another test's.
    std::string line = random.line() + " the cat sat on the mat";
    std::erase_if(line, [](char c) { return c == '\n' || c == '\r'; });
    truth.push_back(line);
  }
  for (const char* name : {"h1", "h2", "h3", "r1", "r2", "r3"}) {
    std::string text;
    for (const std::string& line : truth) {
      std::string variant = random.variant(line);
      std::erase_if(variant, [](char c) { return c == '\n' || c == '\r'; });
      text += variant + "\n";
    }
    write_file(folder / name, text);
  }
}

std::string run_in(const fs::path& folder, const std::string& command) {
  std::string output = (folder / "out").string();
  std::string line =
      fmt::format("cd '{}' && {} >'{}' 2>/dev/null", folder.string(), command, output);
  return std::system(line.c_str()) == 0 ? read_file(output) : "failed: " + command;
}

TEST(Score, PrintsWhatTheSacrebleuCommandPrints) {
  if (!python_has("sacrebleu")) GTEST_SKIP() << "no sacrebleu for " << LOCKSTEP_PYTHON;
  TemporaryFolder folder;
  write_texts(folder.path());
  struct Case {
    const char *theirs, *ours;
  };
  const Case cases[] = {
      {"r1 r2 r3 -i h1 -m bleu chrf ter -f text --confidence",
       "h1 r1 r2 r3 -m bleu,chrf,ter --confidence"},
      {"r1 r2 -i h1 -m bleu chrf ter -f json -w 4 --chrf-word-order 2 --confidence -cin 99",
       "h1 r1 r2 -m bleu,chrf,ter --json -w 4 --chrf-word-order 2 --confidence --confidence-n 99"},
      {"r1 -i h1 -sl -tok intl -lc --short",
       "h1 r1 --sentence-level --tokenize intl --lowercase "
       "--short"},
      {"r1 r2 -i h1 h2 h3 -m chrf bleu ter -f text --paired-bs -pbsn 150",
       "h1 r1 r2 --system h2 --system h3 -m chrf,bleu,ter --paired-bs --paired-bs-n 150"},
      {"r1 r2 r3 -i h1 h2 -f json -s add-k -sv 1.5 --paired-ar -parn 300",
       "h1 r1 r2 r3 --system h2 --json --smooth-method add-k --smooth-value 1.5 --paired-ar "
       "--paired-ar-n 300"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.ours);
    std::string theirs = run_in(
        folder.path(), fmt::format("timeout 60 '{}' '{}/tests/parity/sacrebleu_command.py' {}",
                                   LOCKSTEP_PYTHON, LOCKSTEP_SOURCE, c.theirs));
    EXPECT_EQ(theirs.substr(0, 7) == "failed:", false) << theirs;
    EXPECT_EQ(
        run_in(folder.path(), fmt::format("timeout 60 '{}' score {}", LOCKSTEP_PROGRAM, c.ours)),
        theirs);
  }
}

}  // namespace
}  // namespace lockstep
