#include "launch/push/push_plan.h"

#include <gtest/gtest.h>

#include <map>

#include "base/digest.h"
#include "launch/push/held_files.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

class PushPlanTest : public ::testing::Test {
 protected:
  PushPlanTest() {
    fs::create_directories(work() / "data/corpus");
    fs::create_directories(work() / "runs/old");
    fs::create_directories(root() / "models/bert");
    write_file(work() / "nmt.toml", "");
    write_file(work() / "data/corpus/train.tokens", "tokens");
    write_file(work() / "runs/old/config.toml", "");
    write_file(root() / "models/bert/vocab.txt", "words");
    write_file(root() / "weights.safetensors", "weights");
  }
  fs::path root() const { return folder_.path(); }
  fs::path work() const { return folder_.path() / "work"; }
  PushPlan plan(const std::vector<InputPaths::Entry>& inputs, const std::string& run = "") {
    KnownHashes hashes{fs::path()};
    return plan_push(
        {.folder = work(), .configuration = "nmt.toml", .inputs = inputs, .run_folder = run},
        hashes);
  }
  TemporaryFolder folder_;
};

TEST_F(PushPlanTest, KeepsTheNamesOfWhatIsInTheFolder) {
  const PushPlan out = plan({{"data.corpus", "./data/corpus"}});
  ASSERT_EQ(out.inputs.size(), 2u);
  EXPECT_EQ(out.inputs[0].there, "nmt.toml");
  EXPECT_FALSE(out.inputs[1].moved());
  EXPECT_EQ(out.inputs[1].bytes, 6);
  ASSERT_EQ(out.pieces.size(), 2u);
  EXPECT_EQ(out.pieces[0].path, "data/corpus/train.tokens");
  EXPECT_EQ(out.pieces[1].path, "nmt.toml");
  EXPECT_EQ(plan({{"data.corpus", (work() / "data/corpus").string()}}).inputs[1].there,
            "data/corpus");
}

TEST_F(PushPlanTest, PutsOthersBelowInputsByNameAndPath) {
  const PushPlan out = plan({{"model.source", "../models/bert/"},
                             {"run.load_model", (root() / "weights.safetensors").string()}});
  EXPECT_TRUE(out.inputs[1].there.starts_with("inputs/bert-")) << out.inputs[1].there;
  EXPECT_TRUE(out.inputs[2].there.starts_with("inputs/weights-"));
  EXPECT_TRUE(out.inputs[2].there.ends_with(".safetensors"));
  EXPECT_EQ(out.pieces[0].path, out.inputs[1].there + "/vocab.txt");
  const PushPlan absolute = plan({{"model.source", (root() / "models/bert").string()}});
  EXPECT_TRUE(absolute.inputs[1].there.starts_with("inputs/bert-"));
}

TEST_F(PushPlanTest, SendsNeitherTheHubNorTheRunNorWhatIsNotHere) {
  const PushPlan out =
      plan({{"model.source", "hf:owner/name"}, {"images.data", "/data/images"}, {"a.b", "."}},
           "runs/old");
  ASSERT_EQ(out.inputs.size(), 3u);
  EXPECT_FALSE(out.inputs[1].sent);
  EXPECT_EQ(out.inputs[1].there, "/data/images");
  for (const Piece& piece : out.pieces) EXPECT_NE(piece.path, "runs/old/config.toml");
  EXPECT_EQ(out.pieces.size(), 2u);
}

TEST_F(PushPlanTest, QuotesPathsThatWouldBeAnotherValue) {
  EXPECT_EQ(path_setting("data.corpus", "inputs/c-1"), "data.corpus=inputs/c-1");
  EXPECT_EQ(path_setting("data.corpus", "2024"), "data.corpus=\"2024\"");
  EXPECT_EQ(path_within("/home/ana", "/home/ana/x/"), "x");
  EXPECT_EQ(path_within("/home/ana", "/home/anabel"), "");
  EXPECT_EQ(path_within("/home/ana", "/home/ana"), ".");
}

TEST_F(PushPlanTest, AsksAndAnswersWhatAHostHolds) {
  const PushPlan out = plan({{"data.corpus", "data/corpus"}, {"run.plan", "/no/plan"}});
  std::vector<Piece> pieces;
  std::vector<std::string> paths;
  read_question("welcome\n" + question_text(out.pieces, {"/no/a plan"}), pieces, paths);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].path, out.pieces[0].path);
  EXPECT_EQ(pieces[0].sha256, out.pieces[0].sha256);
  EXPECT_EQ(pieces[0].bytes, 6);
  const fs::path there = root() / "there/deep";
  HeldFiles held = look_at_files(there, pieces, paths);
  EXPECT_EQ(held.missing.size(), 2u);
  EXPECT_EQ(held.absent, std::vector<std::string>{"/no/a plan"});
  write_file(there / "nmt.toml", "");
  fs::create_directories(there / "data/corpus");
  write_file(there / "data/corpus/train.tokens", "another");
  held = read_answer(answer_text(look_at_files(there, pieces, {})));
  EXPECT_EQ(held.changed, std::vector<std::string>{"data/corpus/train.tokens"});
  EXPECT_TRUE(held.missing.empty());
  EXPECT_GT(held.free_bytes, 0);
  EXPECT_GT(read_answer("free 9000000000000000000\n").free_bytes, int64_t{1} << 60);
  EXPECT_EQ(read_answer("free -9000000000000000000\n").free_bytes, 0);
  held = read_answer("used 12 a b\nused\nfree x\n");
  ASSERT_EQ(held.used.size(), 1u);
  EXPECT_EQ(held.used[0].pid, 12);
  EXPECT_EQ(held.used[0].path, "a b");
  write_file(root() / "file", "");
  EXPECT_ERROR(look_at_files(root() / "file/x", pieces, {}), MachineError, "cannot be made");
}

}  // namespace
}  // namespace lockstep
