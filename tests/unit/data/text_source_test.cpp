#include "data/labelled/text_source.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "formats/parquet_file.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

class LabelledTextSources : public ::testing::Test {
 protected:
  // A file of that name, read: "text|pair|label@line" a row.
  std::vector<std::string> rows(const std::string& name, const std::string& content,
                                const TextSourceOptions& options = {}) {
    path_ = folder_.path() / name;
    fs::create_directories(path_.parent_path());
    write_file(path_, content);
    return rows_of(path_, options);
  }
  std::vector<std::string> rows_of(const fs::path& path, const TextSourceOptions& options = {}) {
    std::vector<std::string> out;
    std::unique_ptr<TextSource> source = open_text_source(path, options);
    while (auto block = source->next()) {
      for (const TextRow& row : (*block)()) {
        const std::string place = row.place.substr(row.place.find_last_of(":/") + 1);
        out.push_back(row.text + "|" + row.pair + "|" + row.label.value_or("?") + "@" + place);
      }
    }
    return out;
  }

  TemporaryFolder folder_;
  fs::path path_;
};

using Rows = std::vector<std::string>;

TEST_F(LabelledTextSources, ReadsCsvWithQuotesAndLineEndsInFields) {
  EXPECT_EQ(
      rows("a.csv",
           "\xEF\xBB\xBFlabel,text\r\n1,\"one, \"\"two\"\"\nthree\"\r\n\r\n\"0\",plain\n1,\n"),
      (Rows{"one, \"two\"\nthree||1@2", "plain||0@5", "||1@6"}));
}

TEST_F(LabelledTextSources, ReadsCsvAsSpreadsheetsSeparateIt) {
  const Rows wanted{"one, two; \"three\"||1@2", "4,5||0@3"};
  EXPECT_EQ(rows("a.csv", "label;text\n1;\"one, two; \"\"three\"\"\"\n0;4,5\n"), wanted);
  EXPECT_EQ(rows("a.csv", "label\ttext\n1\t\"one, two; \"\"three\"\"\"\n0\t4,5\n"), wanted);
  EXPECT_EQ(rows("a.csv", "\nlabel,\"te;xt\"\n1,b\n", {.columns = {.wanted = {.text = "te;xt"}}}),
            (Rows{"b||1@3"}));
  EXPECT_EQ(rows("a.csv", "\"a, b\";1\n", {.columns = {.wanted = {.text = "1", .label = "2"}}}),
            (Rows{"a, b||1@1"}));
  EXPECT_ERROR(rows("a.csv", "label;text\n1;a;b\n"), DataError, "a.csv:2: 3 fields, expected 2");
}

TEST_F(LabelledTextSources, ReadsTsvWithoutQuotesUnlessTold) {
  const std::string content = "sentence\tlabel\n\"a\" b\t1\n\"c\td\"\n";
  EXPECT_EQ(rows("a.tsv", content), (Rows{"\"a\" b||1@2", "\"c||d\"@3"}));
  EXPECT_ERROR(rows("a.tsv", content, {.quotes = true}), DataError,
               "a.tsv:2: text behind a closing quote");
}

TEST_F(LabelledTextSources, TakesColumnsByNumberWithOrWithoutHeader) {
  const TextSourceOptions by_number{.columns = {.wanted = {.text = "2", .label = "1"}}};
  EXPECT_EQ(rows("a.tsv", "1\tx y\n0\tz\n", by_number), (Rows{"x y||1@1", "z||0@2"}));
  EXPECT_EQ(rows("a.tsv", "label\tsentence\n0\tz\n", by_number), (Rows{"z||0@2"}));
  TextSourceOptions no_header = by_number;
  no_header.header = false;
  EXPECT_EQ(rows("a.tsv", "label\tsentence\n", no_header), (Rows{"sentence||label@1"}));
  EXPECT_ERROR(rows("a.tsv", "1\tx y\n"), DataError, "no header that names its columns");
}

TEST_F(LabelledTextSources, FindsPairsByTheirUsualNames) {
  EXPECT_EQ(rows("a.csv", "idx,sentence2,sentence1,label\n0,b,a,x\n"), (Rows{"a|b|x@2"}));
  EXPECT_EQ(rows("c.csv", "Review,Sentiment\na,b\n"), (Rows{"a||b@2"}));
  EXPECT_EQ(rows("b.jsonl", R"({"premise": "a", "hypothesis": "b", "label": 2})"),
            (Rows{"a|b|2@1"}));
}

TEST_F(LabelledTextSources, NamesTheNearestColumn) {
  EXPECT_ERROR(rows("a.csv", "text,label\na,b\n", {.columns = {.wanted = {.text = "txt"}}}),
               DataError, "no column \"txt\" (--text); did you mean text?; it has text, label");
  EXPECT_ERROR(rows("a.csv", "a,text\nx,y\n"), DataError, "which column is the label?");
  EXPECT_ERROR(rows("a.csv", "text,label,text\nx,y,z\n"), DataError,
               "the columns 1 and 3 are both named \"text\"");
  EXPECT_EQ(rows("a.csv", "a,text\nx,y\n", {.need_label = false}), (Rows{"y||?@2"}));
}

TEST_F(LabelledTextSources, SaysInWhichLineACsvIsWrong) {
  EXPECT_ERROR(rows("a.csv", "text,label\na,b\nc\n"), DataError,
               "a.csv:3: 1 field, expected 2 as in the header");
  EXPECT_ERROR(rows("a.csv", "text,label\na,\"b\n\nc,d\n"), DataError,
               "a.csv:2: a quote that is never closed");
  EXPECT_ERROR(rows("a.csv", "text,label\na,b\n\xFFx,c\n"), DataError,
               "a.csv:3:1: byte 0xff is not valid UTF-8");
  EXPECT_ERROR(rows("a.csv", ""), DataError, "a.csv: it is empty");
}

TEST_F(LabelledTextSources, ReadsJsonLinesAndLists) {
  const Rows expected{"caf\u00E9||1@1", "b||true@3", "c||?@4"};
  EXPECT_EQ(rows("a.jsonl",
                 "{\"text\": \"caf\\u00e9\", \"label\": 1}\n\n{\"label\": true, \"text\": \"b\"}\n"
                 "{\"text\": \"c\", \"label\": null}\n"),
            expected);
  EXPECT_EQ(rows("a.json", "[{\"text\": \"a\", \"label\": 1},\n{\"text\": \"b\", \"label\": 0.5}]"),
            (Rows{"a||1@ object 1", "b||0.5@ object 2"}));
}

TEST_F(LabelledTextSources, SaysInWhichLineJsonIsWrong) {
  const std::string good = "{\"text\": \"a\", \"label\": 1}\n";
  EXPECT_ERROR(rows("a.jsonl", good + "{\"text\": \"b\", \"label\"}\n"), DataError,
               "a.jsonl:2: not valid JSON");
  EXPECT_ERROR(rows("a.jsonl", good + "{\"txt\": \"b\", \"label\": 1}\n"), DataError,
               "a.jsonl:2: no \"text\"; did you mean txt?");
  EXPECT_ERROR(rows("a.jsonl", good + "{\"text\": 3, \"label\": 1}\n"), DataError,
               "a.jsonl:2: \"text\": expected a text, got number");
  EXPECT_ERROR(rows("a.jsonl", good + "[1]\n"), DataError, "a.jsonl:2: expected an object");
  EXPECT_ERROR(rows("a.jsonl", good + "{\"text\": \"b\", \"label\": [1]}\n"), DataError,
               "expected a label, got array");
  EXPECT_ERROR(rows("a.json", "[{\"text\": \"a\",\n \"label\": }]"), DataError,
               "a.json:2: not valid JSON");
}

TEST_F(LabelledTextSources, ReadsFoldersOfTexts) {
  for (const char* name : {"pos/b.txt", "pos/a.txt", "neg/c.txt", "unsup/d.txt", "pos/e.md"}) {
    fs::create_directories((folder_.path() / "t" / name).parent_path());
    write_file(folder_.path() / "t" / name, name);
  }
  const fs::path folder = folder_.path() / "t";
  EXPECT_EQ(rows_of(folder),
            (Rows{"neg/c.txt||neg@c.txt", "pos/a.txt||pos@a.txt", "pos/b.txt||pos@b.txt"}));
  EXPECT_EQ(rows_of(folder, {.classes = {"pos"}}).size(), 2u);
  EXPECT_ERROR(rows_of(folder, {.classes = {"nag"}}), DataError, "did you mean neg?");
  write_file(folder / "neg/c.txt", "line\nbad \xC3");
  EXPECT_ERROR(rows_of(folder), DataError, "c.txt:2: byte 0xc3 is not valid UTF-8");
}

TEST_F(LabelledTextSources, RefusesOtherFiles) {
  EXPECT_ERROR(rows("a.xml", "<a/>"), DataError, "not known how to read it");
  EXPECT_ERROR(rows_of(folder_.path() / "absent.csv"), DataError, "no such file or folder");
}

TEST_F(LabelledTextSources, SaysHowToReadParquet) {
  if (has_parquet()) {
    EXPECT_ERROR(rows("a.parquet", "no Parquet"), DataError, "no whole Parquet file");
  } else {
    EXPECT_ERROR(rows("a.parquet", "PAR1"), DataError, "pip install pyarrow");
  }
}

}  // namespace
}  // namespace lockstep
