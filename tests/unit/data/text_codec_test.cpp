#include "data/tokenize/text_codec.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/ordered_parallel.h"
#include "base/text.h"
#include "data/lines/line_blocks.h"
#include "data/tokenize/subword.h"
#include "support/python.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

const fs::path kReference = fs::path(LOCKSTEP_SHARED) / "data/reference/sentencepiece";

std::string encoded(const TextCodec& codec, const std::string& text) {
  std::string out;
  codec.encode({.text = text}, out);
  return out;
}

std::string decoded(const TextCodec& codec, const std::string& text) {
  std::string out;
  codec.decode({.text = text}, out);
  return out;
}

std::string joined_numbers(const Json& ids) {
  std::vector<std::string> words;
  for (const Json& id : ids) words.push_back(std::to_string(id.get<int>()));
  return join(words, " ");
}

void expect_rows(const Json& rows, const fs::path& model) {
  auto ids = load_text_codec(model, {});
  auto pieces = load_text_codec(model, {.pieces = true});
  for (const Json& row : rows) {
    std::string text = row["text"];
    std::string numbers = joined_numbers(row["ids"]);
    std::string words = join(row["pieces"].get<std::vector<std::string>>(), " ");
    EXPECT_EQ(encoded(*ids, text), numbers) << text;
    EXPECT_EQ(encoded(*pieces, text), words) << text;
    if (row.contains("decoded")) {
      EXPECT_EQ(decoded(*ids, numbers), row["decoded"].get<std::string>()) << text;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(TextCodec, GivesTheExpectedIdsAndPiecesOfSentencePiece) {
  if (!fs::exists(kReference)) GTEST_SKIP() << "no " << kReference;
  Json rows = Json::array();
  for (const std::string& line : read_lines(kReference / "expected.jsonl.gz")) {
    rows.push_back(Json::parse(line));
  }
  EXPECT_EQ(rows.size(), 200u);
  expect_rows(rows, kReference / "test_model.model");
}

Json random_lines(const std::vector<std::string>& parts) {
  std::mt19937 random(20180819);
  Json lines = Json::array();
  for (int i = 0; i < 400; ++i) {
    std::string text;
    for (auto left = random() % 12; left > 0; --left) text += parts[random() % parts.size()];
    lines.push_back(text);
  }
  return lines;
}

// The lines as the package encodes them.
void expect_equal(const fs::path& model, const Json& lines) {
  TemporaryFolder folder;
  write_file(folder.path() / "job.json",
             Json{{"model", model.string()}, {"kind", "sentencepiece"}, {"lines", lines}}.dump());
  PythonResult result =
      run_parity_script("tokenizer_ids.py", "'" + (folder.path() / "job.json").string() + "'");
  ASSERT_EQ(result.status, 0) << result.errors;
  Json rows = Json::parse(result.output);
  for (std::size_t i = 0; i < lines.size(); ++i) rows[i]["text"] = lines[i];
  expect_rows(rows, model);
}

const std::vector<std::string> kParts{
    "the ", "Botchan",     "  ",     "ﬁne", "１２", "▁", "日本", "é", "e\u0301",
    "😀",    "unhappiness", "\u00A0", "\t",  "x",    "Ω", "<s>",  ","};

// The models that we make: byte-pair encoding.
TEST(TextCodec, EqualsSentencePieceOnRandomText) {
  if (!fs::exists(kReference)) GTEST_SKIP() << "no " << kReference;
  if (!python_has("sentencepiece")) GTEST_SKIP() << "no sentencepiece for " << LOCKSTEP_PYTHON;
  std::vector<std::string> text = read_lines(kReference / "botchan.txt.gz");
  std::size_t at = 0;
  std::string model = learn_subwords({.vocab_size = 1000}, [&](std::string_view& sentence) {
    if (at == text.size()) return false;
    sentence = text[at++];
    return true;
  });
  TemporaryFolder folder;
  write_file(folder.path() / "bpe.model", model);
  std::vector<std::string> parts = kParts;
  parts.insert(parts.end(), {".", "…", "--", "Red ", "Shirt", "'s"});
  expect_equal(folder.path() / "bpe.model", random_lines(parts));
}

// A unigram model. Not with full stops next to each other: of two cuts with the same score Debian's
// library 0.1.97 takes another one than 0.2.3, and that model has pieces of several full stops.
TEST(TextCodec, EqualsSentencePieceOnRandomTextWithAUnigramModel) {
  if (!fs::exists(kReference)) GTEST_SKIP() << "no " << kReference;
  if (!python_has("sentencepiece")) GTEST_SKIP() << "no sentencepiece for " << LOCKSTEP_PYTHON;
  expect_equal(kReference / "test_model.model", random_lines(kParts));
}

class BertCodec : public ::testing::Test {
 protected:
  BertCodec() { write_file(path(), "[PAD]\n[UNK]\n[CLS]\n[SEP]\ndog\n##s\nDog\n.\n"); }
  fs::path path() const { return folder_.path() / "vocab.txt"; }
  TemporaryFolder folder_;
};

TEST_F(BertCodec, WritesPairsWithTypeIdsAndPieces) {
  auto codec = load_text_codec(path(), {.pairs = true, .type_ids = true});
  EXPECT_EQ(encoded(*codec, "Dog\tdogs."), "2 4 3 4 5 7 3\t0 0 0 1 1 1 1");
  auto pieces = load_text_codec(folder_.path(), {.pieces = true});
  EXPECT_EQ(encoded(*pieces, "dogs cat"), "[CLS] dog ##s [UNK] [SEP]");
  EXPECT_EQ(decoded(*pieces, "[CLS] dog ##s . [SEP]"), "dogs.");
  EXPECT_EQ(encoded(*load_text_codec(path(), {.special = false}), "dog"), "4");
  EXPECT_EQ(encoded(*load_text_codec(path(), {.max_length = 4}), "dog dog dog"), "2 4 4 3");
}

TEST_F(BertCodec, IsCasedWhenTheFolderSaysSo) {
  EXPECT_EQ(encoded(*load_text_codec(folder_.path(), {.special = false}), "Dog"), "4");
  EXPECT_EQ(encoded(*load_text_codec(folder_.path(), {.special = false, .cased = true}), "Dog"),
            "6");
  write_file(folder_.path() / "tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_EQ(encoded(*load_text_codec(folder_.path(), {.special = false}), "Dog"), "6");
}

template <typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(BertCodec, SaysWhereALineIsWrong) {
  auto codec = load_text_codec(path(), {.pairs = true});
  EXPECT_EQ(message_of([&] { decoded(*codec, "4 5 x"); }),
            "standard input:1:5: expected an id from 0 to 7, got \"x\"");
  EXPECT_EQ(message_of([&] { decoded(*codec, "4 8"); }),
            "standard input:1:3: expected an id from 0 to 7, got \"8\"");
  EXPECT_EQ(message_of([&] { encoded(*codec, "ä\xFF"); }),
            "standard input:1:2: byte 0xff is not valid UTF-8");
  EXPECT_EQ(message_of([&] { encoded(*codec, "dog"); }),
            "standard input:1:4: expected two texts with one tab between them");
  EXPECT_EQ(message_of([&] { encoded(*codec, "dog\tdog\tdog"); }),
            "standard input:1:8: expected two texts with one tab between them");
}

TEST_F(BertCodec, RefusesOptionsOfTheOtherKind) {
  EXPECT_THROW(load_text_codec(path(), {.start = true}), ConfigError);
  EXPECT_THROW(load_text_codec(path(), {.pairs = true, .special = false}), ConfigError);
  EXPECT_THROW(load_text_codec(path(), {.max_length = 3}), ConfigError);
  EXPECT_THROW(load_text_codec(folder_.path() / "absent", {}), DataError);
  TemporaryFolder empty;
  EXPECT_THROW(load_text_codec(empty.path(), {}), DataError);
  write_file(empty.path() / "x.model", "no model");
  EXPECT_THROW(load_text_codec(empty.path() / "x.model", {}), DataError);
  if (!fs::exists(kReference)) return;
  EXPECT_THROW(load_text_codec(kReference / "test_model.model", {.cased = true}), ConfigError);
}

TEST(LineBlockReader, GivesWholeLinesAsTheyCome) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  auto say = [&](std::string_view text) {
    ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  LineBlockReader reader(ends[0]);
  say("one\ntwo\nthr");
  std::optional<LineBlock> block = reader.next();
  ASSERT_TRUE(block);
  EXPECT_EQ(block->text, "one\ntwo\n");
  say("ee\r\nlast");
  ::close(ends[1]);
  block = reader.next();
  ASSERT_TRUE(block);
  EXPECT_EQ(block->first_number, 3);
  std::string_view rest = block->text;
  EXPECT_EQ(take_line(rest), "three");
  if (rest.empty()) {
    block = reader.next();
    ASSERT_TRUE(block);
    EXPECT_EQ(block->first_number, 4);
    rest = block->text;
  }
  EXPECT_EQ(take_line(rest), "last");
  EXPECT_TRUE(rest.empty());
  EXPECT_FALSE(reader.next());
  ::close(ends[0]);
}

TEST(OrderedStream, EmitsInTheOrderRead) {
  int64_t next = 0, expected = 0;
  ordered_stream(
      3, [&] { return next < 500 ? std::optional(next++) : std::nullopt; },
      [](int64_t item) { return item * item; },
      [&](int64_t result) {
        EXPECT_EQ(result, expected * expected);
        ++expected;
      });
  EXPECT_EQ(expected, 500);
}

TEST(OrderedStream, ThrowsWhatReadingWorkingOrEmittingThrows) {
  for (int place : {0, 1, 2}) {
    int64_t next = 0;
    auto fail_at = [&](int here, int64_t item) {
      if (here == place && item == 20) throw DataError("stop");
    };
    auto run = [&] {
      ordered_stream(
          2,
          [&] {
            fail_at(0, next);
            return next < 100 ? std::optional(next++) : std::nullopt;
          },
          [&](int64_t item) {
            fail_at(1, item);
            return item;
          },
          [&](int64_t item) { fail_at(2, item); });
    };
    EXPECT_THROW(run(), DataError) << place;
  }
}

}  // namespace
}  // namespace lockstep
