#include "data/labelled/prepare_labelled.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/labelled/text_set.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

using LongIds = std::vector<int64_t>;

class LabelledTexts : public ::testing::Test {
 protected:
  LabelledTexts() {
    write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n##b\n");
    options_.input = in();
    options_.out = out();
    options_.vocabulary = folder_.path() / "vocab.txt";
    options_.threads = 2;
    fs::create_directory(in());
  }
  fs::path in() const { return folder_.path() / "in"; }
  fs::path out() const { return folder_.path() / "out"; }
  void write(const std::string& name, const std::string& text) {
    write_file(folder_.path() / name, text);
  }
  TextManifest prepare() {
    fs::remove_all(out());
    return prepare_labelled(options_);
  }
  LongIds ids(const std::string& split, int64_t i) const {
    const TextSet set(out(), split);
    LongIds found(static_cast<std::size_t>(set.file().length(i)));
    set.file().read(i, found.data());
    return found;
  }
  int64_t label(const std::string& split, int64_t i) const {
    return TextSet(out(), split).file().label(i);
  }

  TemporaryFolder folder_;
  PrepareLabelledOptions options_;
};

TEST_F(LabelledTexts, BecomeIdsWithNumbersOfClasses) {
  write("in/train.csv", "text,label\nA b,pos\nab c,neg\nc,pos\n");
  write("in/dev.csv", "label,text\nneg,b\n");
  const TextManifest manifest = prepare();
  EXPECT_EQ(manifest.classes, (std::vector<std::string>{"neg", "pos"}));
  EXPECT_EQ(ids("train", 0), (LongIds{2, 5, 6, 3}));
  EXPECT_EQ(ids("train", 1), (LongIds{2, 5, 8, 7, 3}));
  EXPECT_EQ(label("train", 0), 1);
  EXPECT_EQ(label("train", 1), 0);
  EXPECT_EQ(label("validation", 0), 0);
  const TextSplitRecord& train = *manifest.find_split("train");
  EXPECT_EQ(train.examples, 3);
  EXPECT_EQ(train.tokens, 12);
  EXPECT_EQ(train.class_counts, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(train.lengths.at("p50"), 4);
  EXPECT_EQ(train.lengths.at("max"), 5);
  EXPECT_EQ(manifest.inputs.size(), 2u);
  EXPECT_EQ(BertTokenizer::load(out()).identity(), manifest.tokenizer);
  const TextManifest read = read_text_manifest(out());
  EXPECT_EQ(read.columns.text, "text");
  EXPECT_EQ(read.splits.size(), 2u);
  EXPECT_EQ(read.files, manifest.files);
  EXPECT_NE(describe_labelled(read).find("pos"), std::string::npos);
  EXPECT_ERROR(prepare_labelled(options_), ConfigError, "already holds prepared data");
}

TEST_F(LabelledTexts, AreTheSameForAnyNumberOfThreads) {
  std::string text = "{\"text\": \"a\", \"label\": 0}\n";
  for (int i = 0; i < 3000; ++i) {
    text += "{\"text\": \"" + std::string(1 + i % 7, 'a') +
            " b c\", \"label\": " + std::to_string(i % 5) + "}\n";
  }
  write("in/train.jsonl", text);
  options_.hold_out = 0.1;
  std::vector<std::vector<FileRecord>> files;
  for (int64_t threads : {1, 3}) {
    options_.threads = threads;
    const TextManifest manifest = prepare();
    files.push_back(manifest.files);
    EXPECT_EQ(manifest.splits[0].examples + manifest.splits[1].examples, 3001);
    EXPECT_NEAR(static_cast<double>(manifest.find_split("validation")->examples), 300, 60);
  }
  EXPECT_EQ(files[0], files[1]);
}

TEST_F(LabelledTexts, PairsAreCutAndCounted) {
  write("in/train.tsv", "sentence1\tsentence2\tlabel\na a a a\tb b\t1\na\tb\t0\n");
  options_.max_length = 7;
  const TextManifest manifest = prepare();
  EXPECT_EQ(ids("train", 0), (LongIds{2, 5, 5, 3, 6, 6, 3}));
  EXPECT_EQ(TextSet(out(), "train").file().second_begin(0), 4);
  EXPECT_EQ(manifest.splits[0].truncated, 1);
}

TEST_F(LabelledTexts, LabelsMayBeValues) {
  write("in/train.tsv", "sentence\tscore\na\t0.5\nb\t-3\n");
  options_.regression = true;
  const TextManifest manifest = prepare();
  EXPECT_EQ(manifest.label_kind, LabelKind::kValue);
  EXPECT_EQ(TextSet(out(), "train").file().value(1), -3.0f);
  EXPECT_EQ(manifest.splits[0].values.at("mean"), -1.25);
  write("in/train.tsv", "sentence\tscore\na\thigh\n");
  EXPECT_ERROR(prepare(), DataError, "train.tsv:2: label \"high\": expected a number");
}

TEST_F(LabelledTexts, ALabelThatTrainLacksIsAnError) {
  write("in/train.csv", "text,label\na,pos\nb,neg\n");
  write("in/dev.csv", "text,label\na,pos\nb,neag\n");
  EXPECT_ERROR(prepare(), DataError,
               "dev.csv:3: label \"neag\" is none of the 2 classes; did you mean neg?");
  EXPECT_FALSE(fs::exists(out() / "manifest.json"));
  write("in/dev.csv", "text,lable\na,pos\n");
  EXPECT_ERROR(prepare(), DataError, "no column \"label\" (--label); did you mean lable?");
}

TEST_F(LabelledTexts, TestSetsMayBeWithoutLabels) {
  write("in/train.csv", "text,label\na,1\nb,0\n");
  write("in/test.csv", "text,label\na,-1\nb,-1\n");
  EXPECT_FALSE(prepare().find_split("test")->labelled);
  EXPECT_EQ(TextSet(out(), "test").file().info().label_kind, LabelKind::kNone);
  write("in/test.csv", "index,text\n0,a\n");
  EXPECT_FALSE(prepare().find_split("test")->labelled);
  write("in/test.csv", "text,label\na,-1\nb,1\n");
  EXPECT_ERROR(prepare(), DataError, "test.csv:2: no label, though other texts");
  write("in/test.csv", "text,label\na,1\n");
  EXPECT_TRUE(prepare().find_split("test")->labelled);
  options_.columns.labels = false;
  EXPECT_EQ(prepare().label_kind, LabelKind::kNone);
}

TEST_F(LabelledTexts, EmptyTextsFailOrAreCounted) {
  write("in/train.csv", "text,label\na,1\n \t\x07,0\nb,0\n");
  EXPECT_ERROR(prepare(), DataError, "train.csv:3: an empty text");
  options_.empty = EmptyTexts::kSkip;
  EXPECT_EQ(prepare().splits[0].skipped, 1);
  EXPECT_EQ(ids("train", 1), (LongIds{2, 6, 3}));
  options_.empty = EmptyTexts::kKeep;
  prepare();
  EXPECT_EQ(ids("train", 1), (LongIds{2, 3}));
}

TEST_F(LabelledTexts, TheFirstErrorOfTheFileIsTheOneThrown) {
  std::string text = "text,label\n";
  for (int i = 0; i < 5000; ++i) text += i == 700 ? " ,1\n" : i == 4000 ? "bad\n" : "a,1\n";
  write("in/train.csv", text);
  for (int i = 0; i < 5; ++i) EXPECT_ERROR(prepare(), DataError, "train.csv:702: an empty text");
}

TEST_F(LabelledTexts, OptionsAreChecked) {
  write("in/train.csv", "text,label\na,1\n");
  options_.max_length = 3;
  EXPECT_ERROR(prepare(), ConfigError, "--max-length 3: expected 4 or more");
  options_.max_length = 8;
  options_.hold_out = 0.7;
  EXPECT_ERROR(prepare(), ConfigError, "--hold-out 0.7");
  options_.hold_out = 0.1;
  write("in/dev.csv", "text,label\na,1\n");
  EXPECT_ERROR(prepare(), ConfigError, "there is a validation split already");
  options_.hold_out = 0;
  write("in/train.csv", "text,label\n");
  EXPECT_ERROR(prepare(), DataError, "train: no texts in it");
}

}  // namespace
}  // namespace lockstep
