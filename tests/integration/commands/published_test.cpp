// Published translation models through the whole program: a vocabulary for a corpus, training from
// a model, and back; from a folder and from a hub.
#include <gtest/gtest.h>

#include "base/text.h"
#include "support/local_server.h"
#include "support/tiny_corpus.h"
#include "support/tiny_marian.h"

namespace lockstep {
namespace {

class PublishedCommands : public ::testing::Test {
 protected:
  PublishedCommands() {
    write_tiny_text(path(), "train", 300, 1);
    write_tiny_text(path(), "dev", 20, 2);
    write_tiny_text(path(), "test", 20, 3);
    write_tiny_config(path());
    std::vector<std::string> lines = read_lines(path() / "train.en");
    for (const std::string& line : read_lines(path() / "train.de")) lines.push_back(line);
    make_tiny_marian(model(), lines, 58);
    fs::create_directories(path() / "served/cdn/owner");
    fs::create_directory_symlink(model(), path() / "served/cdn/owner/opus");
    fs::create_directory(path() / "served/owner");
    fs::create_directory_symlink(model(), path() / "served/owner/opus");
    write_file(model() / "COMMIT", std::string(40, 'a'));
  }

  const fs::path& path() const { return folder_.path(); }
  fs::path model() const { return path() / "opus"; }

  std::string prepare(const std::string& vocabulary, const std::string& out) const {
    return fmt::format(
        "prepare text {0}/train.en {0}/train.de --dev {0}/dev.en {0}/dev.de --test {0}/test.en "
        "{0}/test.de --out {0}/{2} --vocab {1}",
        path().string(), vocabulary, out);
  }
  std::string train(const std::string& words) const {
    return fmt::format("train {0}/tiny.toml run.folder={0}/run model.source={0}/opus {1}",
                       path().string(), words);
  }
  static ProgramResult good(const std::string& command, const std::string& before = "") {
    const ProgramResult result = run_lockstep(command, before);
    EXPECT_EQ(result.exit_code, 0) << command << "\n" << result.errors;
    return result;
  }
  static void expect_refused(int code, const std::string& command, const std::string& words,
                             const std::string& before = "") {
    const ProgramResult result = run_lockstep(command, before);
    EXPECT_EQ(result.exit_code, code) << command;
    EXPECT_NE(result.errors.find(words), std::string::npos) << result.errors;
  }

  TemporaryFolder folder_;
};

TEST_F(PublishedCommands, TrainFromAFolderAndGoBack) {
  const std::string p = path().string();
  good(prepare(model().string(), "corpus"));
  EXPECT_EQ(read_file(path() / "corpus/vocab.json"), read_file(model() / "vocab.json"));
  EXPECT_NE(good(prepare(model().string(), "corpus")).output.find("already holds"),
            std::string::npos);
  const ProgramResult trained = good(train("checkpoint.every=20"));
  EXPECT_NE(trained.errors.find("a marian of 2+1 layers and width 32"), std::string::npos)
      << trained.errors;
  const auto steps = metrics_of(path() / "run", "step");
  EXPECT_LT(steps.back().at("train/loss").get<double>(),
            0.95 * steps.front().at("train/loss").get<double>());

  fs::rename(model(), path() / "gone");  // a run has all that it needs
  good(train("--resume training.steps=24"));
  EXPECT_NE(good("evaluate " + p + "/run").output.find("BLEU"), std::string::npos);
  good("export " + p + "/run --out " + p + "/back");
  for (const char* name : {"source.spm", "target.spm", "vocab.json", "tokenizer_config.json"}) {
    EXPECT_EQ(read_file(path() / "back" / name), read_file(path() / "gone" / name)) << name;
  }
  // The run decodes by its own configuration, the folder by its config.json.
  const std::string how =
      " decoding.beam_size=3 decoding.length_penalty=0 decoding.max_length_factor=2 "
      "decoding.max_length_extra=10 decoding.length_norm=tokens --input " +
      p + "/test.en";
  const std::string of_run = good("translate " + p + "/run" + how).output;
  EXPECT_EQ(good("translate " + p + "/back" + how).output, of_run);
  EXPECT_EQ(std::count(of_run.begin(), of_run.end(), '\n'), 20);

  const std::string edge = std::string(LOCKSTEP_PROGRAM) + "-translate";
  if (!fs::exists(edge)) GTEST_SKIP() << "not built: no source of SentencePiece";
  good("export " + p + "/run --format edge --out " + p + "/edge");
  const ProgramResult there = run_program(edge, p + "/edge" + how);
  EXPECT_EQ(there.exit_code, 0) << there.errors;
  EXPECT_EQ(there.output, of_run);
  const std::string pieces = read_file(path() / "edge/vocabulary.pieces");
  const auto expect_damaged = [&](const std::string& contents, const std::string& words) {
    write_file(path() / "edge/vocabulary.pieces", contents);
    const ProgramResult refused = run_program(edge, p + "/edge < /dev/null");
    EXPECT_EQ(refused.exit_code, 3);
    EXPECT_NE(refused.errors.find(words), std::string::npos) << refused.errors;
  };
  expect_damaged(pieces.substr(0, pieces.size() / 2), "vocabulary.pieces: cut short");
  expect_damaged(std::string(pieces.size(), 'x'), "not the file that model.edge was written with");
  fs::remove(path() / "edge/source.spm");
  expect_damaged(pieces, "source.spm: no such file");
}

TEST_F(PublishedCommands, GoThroughUnchanged) {
  const std::string p = path().string();
  good("export " + p + "/opus --out " + p + "/again");
  EXPECT_EQ(read_file(path() / "again/model.safetensors"),
            read_file(model() / "model.safetensors"));
  EXPECT_NE(good("score-pairs " + p + "/opus " + p + "/test.en " + p + "/test.de").output, "");
  good("translate " + p + "/opus decoding.precision=int8 --input " + p + "/test.en");
  expect_refused(2, "export " + p + "/opus --out " + p + "/small --precision int8",
                 "expected fp32 or bf16");
  const std::string ids = good("tokenize " + p + "/opus --ids < " + p + "/test.en").output;
  write_file(path() / "ids.txt", ids);
}

TEST_F(PublishedCommands, NameWhatDoesNotFit) {
  const std::string p = path().string();
  good(prepare("64", "corpus"));
  expect_refused(3, train(""), "encoded with another vocabulary than that of");
  expect_refused(2, prepare("many", "other"), "--vocab many: expected a number of subwords");
  expect_refused(3, prepare(p + "/corpus/..", "other"), "has no vocabulary of a translation model");
  fs::remove(model() / "source.spm");
  expect_refused(3, "translate " + p + "/opus", "there is no source.spm");
  write_file(model() / "config.json", R"({"model_type": "t5"})");
  expect_refused(3, train(""), "lockstep holds marian (Marian, OPUS-MT) and m2m_100");
}

TEST_F(PublishedCommands, ComeFromAHub) {
  const LocalServer server(path() / "served", "{}", "hub_server.py");
  const std::string p = path().string();
  const std::string hub = fmt::format("HF_ENDPOINT={} HF_HOME={}/home HF_TOKEN=", server.url(), p);
  good(prepare("hf:owner/opus", "corpus"), hub);
  for (const std::string& request : server.requests()) {
    EXPECT_EQ(request.find("safetensors"), std::string::npos) << request;
  }
  const std::string local = good("translate " + p + "/opus --input " + p + "/test.en").output;
  EXPECT_EQ(good("translate hf:owner/opus --input " + p + "/test.en", hub).output, local);
  good(train("model.source=hf:owner/opus training.steps=1"), hub + " HF_HUB_OFFLINE=1");

  expect_refused(3, "translate hf:owner/none", "there is no such model, or it is private", hub);
  write_file(model() / "TOKEN", "secret");
  expect_refused(3, prepare("hf:owner/opus", "other"), "HF_TOKEN=...", hub);
  good(prepare("hf:owner/opus", "other"), hub + "secret");
}

}  // namespace
}  // namespace lockstep
