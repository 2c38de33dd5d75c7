#include "recipe/translation_rules.h"

#include <gtest/gtest.h>

#include "recipe/translation_facts.h"
#include "support/expect_error.h"
#include "support/expect_says.h"
#include "support/machines.h"
#include "train/config/run_config.h"

namespace lockstep {
namespace {

TranslationFacts captions() {  // Multi30k
  return {.source_language = "en",
          .target_language = "de",
          .pairs = 29'000,
          .source_words = 11.9,
          .target_words = 11.1,
          .source_characters = 62,
          .target_characters = 72,
          .long_words = 23,
          .distinct_words = 40'000,
          .alphabet = 110,
          .dev_pairs = 1'014,
          .test_pairs = 1'000};
}

TranslationFacts news() {  // WMT16
  TranslationFacts out = captions();
  out.pairs = 4'500'000;
  out.source_words = 24;
  out.target_words = 23;
  out.distinct_words = kMostDistinct;
  return out;
}

TEST(CorpusRules, VocabulariesAreThoseOfTheRecipes) {
  EXPECT_NEAR(static_cast<double>(choose_corpus(captions()).vocabulary), 6'000, 500);
  EXPECT_EQ(choose_corpus(news()).vocabulary, 32'000);
}

TEST(CorpusRules, ATinyTextHasNoMorePiecesThanItsWordsAllow) {
  TranslationFacts facts = captions();
  facts.pairs = 600;
  facts.distinct_words = 20;
  facts.alphabet = 22;
  const int64_t vocabulary = choose_corpus(facts).vocabulary;
  EXPECT_GE(vocabulary, 22 + 4);           // the alphabet and the special pieces
  EXPECT_LE(vocabulary, 22 + 4 + 20 + 4);  // and a piece a word
}

TEST(CorpusRules, TextsWithoutSpacesAreCountedByCharacters) {
  TranslationFacts facts = captions();
  facts.target_language = "zh";
  facts.target_words = 1.1;
  facts.target_characters = 24;
  facts.alphabet = 3'000;
  const CorpusChoice corpus = choose_corpus(facts);
  EXPECT_GT(corpus.vocabulary, 3'000);
  EXPECT_LT(corpus.character_coverage, 1);
  EXPECT_GE(corpus.ratio, 50);
  const Recipe recipe = translation_recipe(facts, measured_machine(), {}, {"c", "d", "r"});
  EXPECT_EQ(recipe.get<std::vector<std::string>>("evaluation.metrics")[0], "chrf");
}

TEST(TranslationRules, CaptionsAreTheMulti30kRecipe) {
  const MachineFacts machine = measured_machine();
  const TransformerChoice network = choose_transformer(captions(), machine, {30});
  EXPECT_EQ(network.size.d_model, 128);
  EXPECT_EQ(network.size.layers, 4);
  const TranslationLength length =
      choose_translation_length(captions(), network.size, machine, {30});
  EXPECT_EQ(length.tokens, 2048);
  EXPECT_NEAR(static_cast<double>(length.steps), 10'000, 1'500);
  EXPECT_EQ(length.warmup, 800);
  EXPECT_LE(length.seconds, 30 * 60);
  EXPECT_TRUE(length.data_bound);
  EXPECT_EQ(choose_dropout(length.epochs), 0.3);
  const Recipe recipe = translation_recipe(captions(), machine, {30}, {"c", "d", "r"});
  EXPECT_EQ(recipe.get<double>("optimizer.lr"), 5e-3);
}

TEST(TranslationRules, StepsGrowWithTheTimeUntilTheDataAreSeenOftenEnough) {
  const MachineFacts machine = measured_machine();
  const TransformerSize size;
  int64_t before = 0;
  for (double minutes : {3, 6, 30, 60}) {
    const TranslationLength length =
        choose_translation_length(captions(), size, machine, {minutes});
    EXPECT_GT(length.steps, before) << minutes;
    EXPECT_GE(length.warmup, 10);
    EXPECT_LT(length.warmup, length.steps / 3);
    before = length.steps;
  }
  const TranslationLength day = choose_translation_length(captions(), size, machine, {1440});
  EXPECT_TRUE(day.data_bound);
  EXPECT_NEAR(day.epochs, 50, 1);
  EXPECT_EQ(choose_dropout(day.epochs), 0.3);
}

TEST(TranslationRules, AShortTimeTakesANarrowNetworkAndALongOneOnMuchDataABase) {
  MachineFacts slow = measured_machine();
  slow.product_flops = slow.fp32_flops = 60e9;  // a core without bf16
  EXPECT_EQ(choose_transformer(news(), slow, {4}).size.d_model, 128);
  EXPECT_EQ(choose_transformer(news(), measured_machine(), {30}).size.d_model, 256);
  expect_says(choose_transformer(news(), measured_machine(), {30}).why, "--minutes");
  EXPECT_EQ(choose_transformer(news(), larger_machine(32), {600}).size.d_model, 512);
}

TEST(TranslationRules, AGpuTakesLargeStepsAndSaysThatNoneWasMeasured) {
  const MachineFacts machine = machine_with_gpus(1);
  const TransformerSize size;
  EXPECT_GE(choose_translation_length(news(), size, machine, {30}).tokens, 8192);
  const Recipe recipe = translation_recipe(news(), machine, {30}, {"c", "d", "r"});
  expect_says(recipe.why("training.steps"), "no GPU was measured");
}

TEST(TranslationRules, LittleMemoryIsSaid) {
  MachineFacts machine = measured_machine();
  EXPECT_FALSE(
      translation_recipe(captions(), machine, {}, {"c", "d", "r"}).find("training.fit_memory"));
  machine.available_bytes = 300 << 20;
  EXPECT_TRUE(translation_recipe(captions(), machine, {}, {"c", "d", "r"})
                  .get<bool>("training.fit_memory"));
}

// Every key of every branch is one of the configuration's, in its range.
TEST(TranslationRules, EveryRecipeReads) {
  std::vector<TranslationFacts> sets = {captions(), news(), captions(), captions()};
  sets[2].pairs = 5;
  sets[3].vocabulary = 8'000;
  sets[3].target_pieces = 400'000;
  sets[3].dev_pairs = 0;
  for (const TranslationFacts& facts : sets) {
    for (const MachineFacts& machine :
         {measured_machine(), larger_machine(0.2), larger_machine(40), machine_with_gpus(4)}) {
      for (double minutes : {0.5, 30.0, 3000.0}) {
        const Recipe recipe = translation_recipe(facts, machine, {minutes}, {"c", "d", "runs/r"});
        const RunConfig config =
            read_run_config(ConfigSource::from_text(recipe.to_toml(), "made.toml"));
        EXPECT_EQ(config.run.folder, "runs/r");
        EXPECT_GE(config.training.steps, 20);
      }
    }
  }
}

TEST(TranslationRules, ACorpusThatIsPreparedNeedsNoPreparation) {
  TranslationFacts facts = captions();
  facts.vocabulary = 6'000;
  facts.target_pieces = 430'000;
  const auto next = translation_commands(facts, {}, {"m.toml", "data/m", "runs/m"});
  ASSERT_EQ(next.size(), 3u);
  EXPECT_EQ(next[0], "lockstep launch -n auto -- train m.toml");
  EXPECT_EQ(next[1], "lockstep evaluate runs/m --split test");
  EXPECT_EQ(next[2], "lockstep translate runs/m < lines.en > lines.de");
}

class AlignedFolder : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text = "a b\nc d\n") {
    write_file(folder_.path() / name, text);
  }
  TranslationFiles find(const std::string& source = "") {
    return find_translation_files(folder_.path(), source);
  }
  TemporaryFolder folder_;
};

TEST_F(AlignedFolder, SplitsAndDirectionComeFromTheNames) {
  for (const char* name : {"train", "val", "test_2016_flickr", "test_2017"}) {
    put(std::string(name) + ".de");
    put(std::string(name) + ".en");
  }
  put("README.md");
  put("vocabulary.txt");
  TranslationFiles files = find();
  EXPECT_EQ(files.source_language, "en");
  EXPECT_EQ(files.target_language, "de");
  EXPECT_EQ(files.train.source.filename(), "train.en");
  ASSERT_TRUE(files.dev && files.test);
  EXPECT_EQ(files.dev->target.filename(), "val.de");
  EXPECT_EQ(files.test->source.filename(), "test_2016_flickr.en");
  EXPECT_EQ(files.passed_over, std::vector<std::string>{"test_2017"});
  EXPECT_EQ(find("de").train.source.filename(), "train.de");
  EXPECT_ERROR(find("dr"), ConfigError, "did you mean");
}

TEST_F(AlignedFolder, AnOnlyPairIsTrain) {
  put("europarl-v7.de-fr.fr");
  put("europarl-v7.de-fr.de");
  EXPECT_EQ(find().train.source.filename(), "europarl-v7.de-fr.de");
}

TEST_F(AlignedFolder, WhatIsNotClearIsAnError) {
  EXPECT_ERROR(find(), DataError, "no aligned text found");
  put("corpus.en");
  put("corpus.de");
  put("dev.en");
  put("dev.de");
  EXPECT_ERROR(find(), DataError, "no pair of files is named train");
  put("train.en");
  put("train.de");
  put("train.fr");
  EXPECT_ERROR(find(), DataError, "3 languages (de, en, fr)");
}

TEST_F(AlignedFolder, CountsWordsLengthsAndCharacters) {
  std::string source, target;
  for (int i = 0; i < 100; ++i) {
    source += "one two three\n";
    target += i == 50 ? "ä b c d e f g h i j\n" : "eins zwei\n";
  }
  put("train.en", source);
  put("train.de", target + "\n");
  EXPECT_ERROR(read_translation_facts(find()), DataError, "has 100 lines");
  put("train.de", target);
  const TranslationFacts facts = read_translation_facts(find());
  EXPECT_EQ(facts.pairs, 100);
  EXPECT_DOUBLE_EQ(facts.source_words, 3);
  EXPECT_DOUBLE_EQ(facts.target_words, 2.08);
  EXPECT_EQ(facts.long_words, 3);
  EXPECT_EQ(facts.distinct_words, 3 + 2 + 10);
  put("train.en", "\n\n");
  put("train.de", "\n\n");
  EXPECT_ERROR(read_translation_facts(find()), DataError, "no pair of lines with text in both");
}

TEST(TranslationFiles, WithoutLanguagesInTheirNamesAreSourceAndTarget) {
  const TranslationFiles files = name_translation_files({"src-train.txt", "tgt-train.txt"});
  EXPECT_EQ(files.source_language, "source");
  EXPECT_EQ(files.target_language, "target");
}

}  // namespace
}  // namespace lockstep
