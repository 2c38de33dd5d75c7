#include "batches/text_loader.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/digest.h"
#include "base/error.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

using Numbers = std::vector<int32_t>;

constexpr int64_t kTexts = 23;

// Example i has the ids 2, i + 10 ..., 3, and, when i is odd, a second text of three ids.
class TextLoaders : public ::testing::Test {
 protected:
  void SetUp() override { write(LabelKind::kClass); }

  void write(LabelKind kind) {
    TextManifest manifest;
    manifest.tokenizer = {.vocab_size = 100, .vocab_sha256 = std::string(64, 'b')};
    manifest.label_kind = kind;
    if (kind == LabelKind::kClass) manifest.classes = {"a", "b", "c"};
    TextFileWriter writer(folder_.path() / "train.texts",
                          {.vocab_size = 100,
                           .vocab_sha256 = manifest.tokenizer.vocab_sha256,
                           .label_kind = kind,
                           .classes = static_cast<int32_t>(manifest.classes.size())});
    for (int32_t i = 0; i < kTexts; ++i) {
      Numbers ids{2};
      for (int32_t k = 0; k <= i; ++k) ids.push_back(i + 10);
      ids.push_back(3);
      const auto boundary = static_cast<int32_t>(ids.size());
      if (i % 2 == 1) ids.insert(ids.end(), {50, 51, 52, 3});
      writer.add({.ids = ids, .second_begin = boundary, .label = i % 3, .value = i * 0.5f});
    }
    writer.finish();
    manifest.splits.push_back(
        {.name = "train", .file = "train.texts", .examples = kTexts, .tokens = writer.tokens()});
    manifest.files.push_back(record_file(folder_.path() / "train.texts"));
    write_text_manifest(folder_.path(), manifest);
  }
  TextSet set() const { return TextSet(folder_.path(), "train"); }

  TemporaryFolder folder_;
};

TEST_F(TextLoaders, EveryEpochHasEachTextOnceForAnyNumberOfParts) {
  const TextSet texts = set();
  TextLoader loader(texts, {.examples = 8}, {.seed = 7});
  EXPECT_EQ(loader.steps_in_epoch(0), 3);
  std::set<Numbers> orders;
  for (int64_t epoch : {0, 1, 0}) {
    for (int64_t parts : {1, 2, 3}) {
      Numbers all;
      for (int64_t step = 0; step < 3; ++step) {
        std::set<int64_t> of_step;
        for (int64_t part = 0; part < parts; ++part) {
          const TextTensors batch =
              loader.batch(epoch, step, part, StepParts(equal_shares(parts, 1)));
          for (int64_t i = 0; i < batch.texts(); ++i) {
            of_step.insert(batch.indices[i].item<int64_t>());
          }
        }
        EXPECT_EQ(std::ssize(of_step), loader.examples_in_step(0, step));
        all.insert(all.end(), of_step.begin(), of_step.end());
      }
      orders.insert(all);  // which texts make which step: for all parts alike
      std::sort(all.begin(), all.end());
      EXPECT_EQ(all, text_order(kTexts, "file", 7, 0));
    }
  }
  EXPECT_EQ(orders.size(), 2u);  // one an epoch
}

TEST_F(TextLoaders, PacksIdsTypesAndLabels) {
  const TextSet texts = set();
  const TextLoader loader(texts, {}, {});
  const TextTensors batch = loader.pack(Numbers{1, 0, 1});
  EXPECT_EQ(batch.lengths, (Numbers{8, 3, 8}));
  EXPECT_TRUE(torch::equal(
      batch.ids, torch::tensor({2, 11, 11, 3, 50, 51, 52, 3, 2, 10, 3, 2, 11, 11, 3, 50, 51, 52, 3},
                               torch::kLong)));
  EXPECT_TRUE(torch::equal(
      batch.type_ids,
      torch::tensor({0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1}, torch::kLong)));
  EXPECT_TRUE(torch::equal(batch.labels, torch::tensor({1, 0, 1}, torch::kLong)));
  EXPECT_TRUE(torch::equal(batch.indices, torch::tensor({1, 0, 1}, torch::kLong)));
  EXPECT_EQ(loader.pack(Numbers{}).tokens(), 0);
}

TEST_F(TextLoaders, LabelsMayBeValuesOrAbsent) {
  write(LabelKind::kValue);
  EXPECT_TRUE(
      torch::equal(TextLoader(set(), {}, {}).pack(Numbers{3}).labels, torch::tensor({1.5f})));
  write(LabelKind::kNone);
  EXPECT_FALSE(TextLoader(set(), {}, {}).pack(Numbers{3}).labels.defined());
}

TEST_F(TextLoaders, CutsTheLongerTextOfAPair) {
  const TextSet texts = set();
  const TextLoader loader(texts, {.longest = 7}, {});
  // 6 + 3 ids with three special ones: two and two are left.
  EXPECT_TRUE(torch::equal(loader.pack(Numbers{5}).ids,
                           torch::tensor({2, 15, 15, 3, 50, 51, 3}, torch::kLong)));
  EXPECT_TRUE(torch::equal(loader.pack(Numbers{5}).type_ids,
                           torch::tensor({0, 0, 0, 0, 1, 1, 1}, torch::kLong)));
  EXPECT_TRUE(torch::equal(loader.pack(Numbers{8}).ids,
                           torch::tensor({2, 18, 18, 18, 18, 18, 3}, torch::kLong)));
  EXPECT_THROW(TextLoader(texts, {.longest = 3}, {}), ConfigError);
}

TEST_F(TextLoaders, PartsHaveNearlyEqualNumbersOfTokens) {
  const TextSet texts = set();
  TextLoader loader(texts, {.examples = 12}, {.ranks = 3});
  std::vector<int64_t> tokens;
  for (int64_t part = 0; part < 3; ++part)
    tokens.push_back(loader.batch(0, 0, part, StepParts(equal_shares(3, 1))).tokens());
  EXPECT_EQ(std::accumulate(tokens.begin(), tokens.end(), int64_t{0}), loader.tokens_in_step(0, 0));
  auto [least, most] = std::minmax_element(tokens.begin(), tokens.end());
  EXPECT_LE(*most - *least, 8);
}

TEST_F(TextLoaders, AnEpochWhoseStepsGetAnotherSizeHasEachTextOnce) {
  const TextSet texts = set();
  TextLoader before(texts, {.examples = 8}, {.seed = 7}),
      after(texts, {.examples = 3}, {.seed = 7});
  after.continue_epoch(1, {{1, {8, "texts"}}});
  Numbers all;
  auto take = [&](TextLoader& loader, int64_t step) {
    const TextTensors batch = loader.batch(1, step, 0, StepParts());
    for (int64_t i = 0; i < batch.texts(); ++i) all.push_back(batch.indices[i].item<int64_t>());
  };
  take(before, 0);
  for (int64_t step = 1; step < after.steps_in_epoch(1); ++step) take(after, step);
  EXPECT_EQ(after.steps_in_epoch(1), 1 + (kTexts - 8 + 2) / 3);
  EXPECT_EQ(after.steps_in_epoch(2), (kTexts + 2) / 3);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, text_order(kTexts, "file", 7, 0));
}

TEST_F(TextLoaders, KeepsTheOrderOfTheFileWhenTold) {
  const TextSet texts = set();
  TextLoader loader(texts, {.examples = 4, .order = "file"}, {});
  for (int64_t epoch : {0, 5}) {
    EXPECT_TRUE(torch::equal(loader.batch(epoch, 1, 0, StepParts()).indices,
                             torch::tensor({4, 5, 6, 7}, torch::kLong)));
  }
}

TEST_F(TextLoaders, CountsStepsAsAsked) {
  const TextSet texts = set();
  EXPECT_EQ(TextLoader(texts, {.examples = 8, .drop_last = true}, {}).steps_in_epoch(0), 2);
  const TextLoader by_rank(texts, {.accumulate = 2}, {.ranks = 3, .step_examples = 12});
  EXPECT_EQ(by_rank.examples_in_step(0, 0), 12);
  EXPECT_EQ(by_rank.examples_in_step(0, 1), 11);
  EXPECT_ERROR(TextLoader(texts, {.examples = 3, .accumulate = 2}, {.ranks = 2}).check_training(),
               ConfigError, "expected at least 4");
  EXPECT_ERROR(TextLoader(texts, {.examples = 32, .drop_last = true}, {}).check_training(),
               ConfigError, "no step of an epoch is full");
}

TEST_F(TextLoaders, EvaluationHasEachTextOnceInGroupsOfLikeLength) {
  const TextSet texts = set();
  const TextLoader loader(texts, {.evaluation_tokens = 40}, {});
  Numbers all;
  int32_t before = INT32_MAX;
  for (const Numbers& group : loader.evaluation_groups()) {
    int64_t tokens = 0;
    for (int32_t i : group) {
      EXPECT_LE(loader.lengths()[i], before);
      before = loader.lengths()[i];
      tokens += before;
    }
    EXPECT_TRUE(tokens <= 40 || group.size() == 1);
    all.insert(all.end(), group.begin(), group.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, text_order(kTexts, "file", 0, 0));
}

TEST_F(TextLoaders, ASetBelongsToItsManifest) {
  EXPECT_ERROR(TextSet(folder_.path(), "trian"), DataError,
               "no split \"trian\"; did you mean train? (train)");
  EXPECT_EQ(set().identity(), sha256_of_file(folder_.path() / "train.texts"));
  TextManifest manifest = read_text_manifest(folder_.path());
  manifest.tokenizer.vocab_sha256[0] = 'c';
  write_text_manifest(folder_.path(), manifest);
  EXPECT_ERROR(set(), DataError, "not the file that manifest.json tells of");
}

}  // namespace
}  // namespace lockstep
