#include "recipe/texts_rules.h"

#include <gtest/gtest.h>

#include "recipe/guess_columns.h"
#include "support/expect_error.h"
#include "support/expect_says.h"
#include "support/machines.h"
#include "train/config/run_config.h"

namespace lockstep {
namespace {

TextsFacts sentences() {  // SST-2
  TextsFacts out;
  out.texts = 6'920;
  out.classes = {{"0", 3'310}, {"1", 3'610}};
  out.mean_tokens = 24;
  out.long_tokens = 54;
  out.validation = 872;
  return out;
}

TextsFacts reviews() {  // IMDB
  TextsFacts out = sentences();
  out.texts = 25'000;
  out.classes = {{"0", 12'500}, {"1", 12'500}};
  out.mean_tokens = 300;
  out.long_tokens = 1'170;
  out.validation = 0;
  out.labelled_test = true;
  return out;
}

const RunNames kTextRun{"c.toml", "data/c", "runs/c"};
const ModelsAtHand kFolder{.minilm_folder = true};

TEST(TextsRules, SentencesInAFewMinutesAreTheSst2Recipe) {
  const MachineFacts machine = measured_machine();
  const BertSource source = choose_bert(sentences(), machine, {6}, kFolder);
  EXPECT_EQ(source.source, "minilm");
  const TextsLength length = choose_texts_length(sentences(), source, machine, {6});
  EXPECT_EQ(length.epochs, 2);
  EXPECT_EQ(length.batch, 32);
  EXPECT_EQ(length.longest, 64);
  EXPECT_NEAR(length.seconds, 2 * 6'920 / 188.0, 10);
  EXPECT_EQ(choose_bert_lr(source.size, length.steps), 1e-4);
  EXPECT_EQ(choose_bert_lr(source.size, 1'500), 5e-5);
}

TEST(TextsRules, LongTextsAreCutBeforeSomeAreLeftOut) {
  const MachineFacts machine = measured_machine();
  const BertSource source = choose_bert(reviews(), machine, {6}, kFolder);
  EXPECT_EQ(choose_texts_length(reviews(), source, machine, {6}).longest, 128);
  const TextsLength long_run = choose_texts_length(reviews(), source, machine, {90});
  EXPECT_EQ(long_run.longest, 512);
  EXPECT_EQ(long_run.batch, 16);
  EXPECT_GE(long_run.epochs, 1);
  const TextsLength minute = choose_texts_length(reviews(), source, machine, {1});
  EXPECT_EQ(minute.epochs, 0);
  EXPECT_GE(minute.steps, 20);
  BertSource small = source;
  small.longest = 16;
  EXPECT_EQ(choose_texts_length(reviews(), small, machine, {6}).longest, 16);
}

TEST(TextsRules, TheModelIsWhatTheTimeAllowsAndWhatIsThere) {
  const MachineFacts machine = measured_machine();
  EXPECT_EQ(choose_bert(reviews(), machine, {30}, {}).source, kMiniLm);
  EXPECT_EQ(choose_bert(sentences(), machine, {120}, {}).source, kBertBase);
  EXPECT_EQ(choose_bert(sentences(), machine, {15}, {.base_cached = true}).source, kBertBase);
  EXPECT_EQ(choose_bert(sentences(), machine, {15}, {}).source, kMiniLm);
  TextsFacts german = sentences();
  german.other_letters = 0.018;
  EXPECT_EQ(choose_bert(german, machine, {30}, kFolder).source, kMultilingual);
}

TEST(TextsRules, PreparedTextsKeepTheModelOfTheirVocabulary) {
  TextsFacts facts = sentences();
  facts.prepared = true;
  facts.vocabulary = 119'547;
  EXPECT_EQ(choose_bert(facts, measured_machine(), {}, kFolder).source, kMultilingual);
  facts.vocabulary = 500;
  EXPECT_ERROR(choose_bert(facts, measured_machine(), {}, kFolder), ConfigError, "--model");
}

TEST(TextsRules, UnevenClassesAreMeasuredByTheirMean) {
  TextsFacts facts = sentences();
  EXPECT_EQ(choose_text_metrics(facts)[0], "accuracy");
  facts.classes = {{"spam", 300}, {"ham", 6'000}};
  EXPECT_EQ(choose_text_metrics(facts)[0], "f1_macro");
  facts.classes.clear();
  EXPECT_EQ(choose_text_metrics(facts)[0], "spearman");
}

TEST(TextsRules, EveryRecipeReads) {
  TextsFacts tiny = sentences(), numbers = sentences(), uneven = reviews(), ready = reviews();
  tiny.texts = 12;
  numbers.classes.clear();
  uneven.classes = {{"a", 100}, {"b", 24'000}, {"c", 900}};
  ready.prepared = true;
  ready.vocabulary = 30'522;
  for (const TextsFacts& facts : {sentences(), reviews(), tiny, numbers, uneven, ready}) {
    for (const MachineFacts& machine :
         {measured_machine(), larger_machine(0.2), larger_machine(40), machine_with_gpus(4)}) {
      for (double minutes : {0.5, 30.0, 3000.0}) {
        const BertSource source = choose_bert(facts, machine, {minutes}, {});
        const Recipe recipe = texts_recipe(facts, source, machine, {minutes}, kTextRun);
        SCOPED_TRACE(recipe.to_toml());
        const RunConfig config =
            read_run_config(ConfigSource::from_text(recipe.to_toml(), "made.toml"));
        EXPECT_TRUE(config.training.epochs > 0 || config.training.steps > 0);
      }
    }
  }
}

TEST(TextsCommands, NameWhatWasGuessed) {
  TextsCommandsInput input;
  input.input.data = "data/agnews";
  input.reading.columns = {.text = "2", .pair = "3", .label = "1"};
  input.reading.guessed = true;
  input.reading.classes_file = "data/agnews/classes.txt";
  input.source.source = "minilm";
  input.longest = 128;
  TextsFacts facts = sentences();
  facts.validation = 0;
  facts.labelled_test = true;
  const auto next = texts_commands(facts, input, kTextRun);
  ASSERT_EQ(next.size(), 3u);
  EXPECT_EQ(next[0],
            "lockstep prepare labelled data/agnews --vocab minilm --text 2 --pair 3 --label 1 "
            "--classes data/agnews/classes.txt --hold-out 0.1 --max-length 128 --out data/c");
  EXPECT_EQ(next[2], "lockstep evaluate runs/c --split test --by-class");
}

std::vector<TableRow> table(const TableRow& header, int rows) {
  std::vector<TableRow> out;
  if (!header.empty()) out.push_back(header);
  for (int i = 0; i < rows; ++i) {
    out.push_back({fmt::format("{}_7", i), std::to_string(i % 3),
                   fmt::format("this is the {} text of a list of texts", i)});
  }
  return out;
}

TEST(GuessedColumns, AreTheWordsAndTheFewValues) {
  auto guess = guess_columns(table({}, 40));
  ASSERT_TRUE(guess);
  EXPECT_FALSE(guess->header);
  EXPECT_EQ(guess->columns.text, "3");
  EXPECT_EQ(guess->columns.label, "2");
  EXPECT_EQ(guess->columns.pair, "");
  guess = guess_columns(table({"id", "stars", "what they wrote"}, 40));
  ASSERT_TRUE(guess);
  EXPECT_TRUE(guess->header);
  EXPECT_EQ(guess->columns.text, "what they wrote");
  EXPECT_EQ(guess->columns.label, "stars");
}

// As Kaggle's spam.csv.
TEST(GuessedColumns, AHeaderMayLackNames) {
  std::vector<TableRow> rows{{"v1", "v2", "", ""}};
  for (int i = 0; i < 40; ++i) {
    rows.push_back({i % 2 == 0 ? "ham" : "spam", fmt::format("message {} of a list", i), "", ""});
  }
  const auto guess = guess_columns(rows);
  ASSERT_TRUE(guess);
  EXPECT_TRUE(guess->header);
  EXPECT_EQ(guess->columns.text, "v2");
  EXPECT_EQ(guess->columns.label, "v1");
}

TEST(GuessedColumns, ASecondTextMakesAPair) {
  std::vector<TableRow> rows;
  for (int i = 0; i < 3000; ++i) {
    rows.push_back({fmt::format("a title of number {}", i), i % 2 == 0 ? "yes" : "no",
                    fmt::format("the description of number {} is longer than its title", i)});
  }
  const auto guess = guess_columns(rows);
  ASSERT_TRUE(guess);
  EXPECT_EQ(guess->columns.text, "1");
  EXPECT_EQ(guess->columns.pair, "3");
  EXPECT_EQ(guess->columns.label, "2");
}

TEST(GuessedColumns, NothingIsGuessedWithoutATextOrALabel) {
  std::vector<TableRow> rows, numbers;
  for (int i = 0; i < 30; ++i) {
    rows.push_back({fmt::format("text {} of some words", i), fmt::format("other {} text", i)});
    numbers.push_back({std::to_string(i), std::to_string(i % 2)});
  }
  EXPECT_FALSE(guess_columns(rows));
  EXPECT_FALSE(guess_columns(numbers));
  EXPECT_FALSE(guess_columns({}));
}

class TextFolder : public ::testing::Test {
 protected:
  TextsFound read(const std::string& text, TextsInput input = {}) {
    write_file(folder_.path() / "train.tsv", text);
    input.data = folder_.path();
    return read_texts_facts(input, "");
  }
  static std::string lines(int count, int classes) {
    std::string out;
    for (int i = 0; i < count; ++i) {
      out += fmt::format("{}\tthe {} film of all these films\n", i % classes, i);
    }
    return out;
  }
  TemporaryFolder folder_;
};

TEST_F(TextFolder, IsCounted) {
  const TextsFound found = read(lines(60, 2));
  EXPECT_TRUE(found.reading.guessed);
  EXPECT_EQ(found.facts.texts, 60);
  EXPECT_EQ(found.facts.classes,
            (std::vector<std::pair<std::string, int64_t>>{{"0", 30}, {"1", 30}}));
  EXPECT_NEAR(found.facts.mean_tokens, 2 + 1.3 * 7, 1e-9);
  EXPECT_FALSE(found.facts.counted_tokens);
  EXPECT_EQ(found.facts.validation, 0);
}

TEST_F(TextFolder, LettersOfOtherLanguagesAreCountedAndQuotationMarksAreNot) {
  std::string curly = lines(60, 2), german = lines(60, 2);
  for (std::size_t at = 0; (at = german.find("film", at)) != std::string::npos;) {
    german.replace(at, 4, "Hörspiel");
  }
  for (std::size_t at = 0; (at = curly.find("film", at)) != std::string::npos; at += 8) {
    curly.replace(at, 4, "“film”");
  }
  EXPECT_EQ(read(curly).facts.other_letters, 0);
  EXPECT_GT(read(german).facts.other_letters, 0.02);
}

TEST_F(TextFolder, ClassNamesBesideItAreTakenWhereTheyFit) {
  write_file(folder_.path() / "classes.txt", "bad\ngood\n");
  EXPECT_EQ(fs::path(read(lines(60, 2)).reading.classes_file).filename(), "classes.txt");
  EXPECT_EQ(read(lines(60, 3)).reading.classes_file, "");
}

TEST_F(TextFolder, WhatIsNoClassificationIsAnError) {
  TextsInput named;
  named.columns = {.text = "2", .pair = "", .label = "1"};
  EXPECT_ERROR(read(lines(60, 1), named), DataError, "all 60 texts have the label \"0\"");
  EXPECT_ERROR(read(lines(60, 60), named), DataError, "--regression");
  EXPECT_ERROR(read("1\ta text of words\n\tanother text of words\n", named), DataError,
               "train.tsv:2: no label");
  named.values = true;
  EXPECT_ERROR(read("good\ta b c\nbad\td e f\n", named), DataError, "not all labels are numbers");
  const TextsFound found = read("0.5\ta b c\n3.5\td e f\n", named);
  EXPECT_TRUE(found.facts.values());
  EXPECT_EQ(found.facts.largest_value, 3.5);
}

}  // namespace
}  // namespace lockstep
