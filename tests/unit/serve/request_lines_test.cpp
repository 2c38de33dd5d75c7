#include "serve/request_lines.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Lines = std::vector<std::string>;

RequestLines read(const std::string& body, const std::string& type, const LineLimits& limits = {}) {
  return read_request_lines({.method = "POST", .content_type = type, .body = body}, limits);
}

// Expects that the body is refused with that status and that words are in the answer.
void expect_refused(const std::string& body, const std::string& type, int status,
                    const std::string& words, const LineLimits& limits = {}) {
  try {
    read(body, type, limits);
    ADD_FAILURE() << "taken: " << body;
  } catch (const RefusedLines& refused) {
    EXPECT_EQ(refused.response.status, status);
    EXPECT_NE(refused.response.body.find(words), std::string::npos) << refused.response.body;
    EXPECT_TRUE(nlohmann::json::accept(refused.response.body));
  }
}

TEST(RequestLines, ReadsTextWithOrWithoutALastLineEnd) {
  EXPECT_EQ(read("a b\r\n\nc", "text/plain").lines, (Lines{"a b", "", "c"}));
  EXPECT_EQ(read("a\nb\n", "").lines, (Lines{"a", "b"}));
  EXPECT_TRUE(read("", "text/plain").lines.empty());
}

TEST(RequestLines, ReadsJsonLinesAndGivesIdsBack) {
  const RequestLines request =
      read("{\"text\":\"gr\\u00fcn\",\"id\":[1]}\n{\"text\":\"\"}\n", "application/x-ndjson");
  EXPECT_EQ(request.lines, (Lines{"grün", ""}));
  const HttpResponse response =
      write_translations(request, {{{"green", -0.5, 1}}, {{"", 0, 0}}}, 0);
  EXPECT_EQ(response.body,
            "{\"id\":[1],\"translation\":\"green\",\"score\":-0.5}\n"
            "{\"translation\":\"\",\"score\":0.0}\n");
}

TEST(RequestLines, WritesSeveralTranslationsAsTranslateDoes) {
  const std::vector<std::vector<TranslatedLine>> two = {{{"x", -0.25, 1}, {"y", -1, 1}}};
  EXPECT_EQ(write_translations(read("a", "text/plain"), two, 2).body,
            "0 ||| x ||| -0.250000\n0 ||| y ||| -1.000000\n");
  EXPECT_EQ(write_translations(read("{\"text\":\"a\"}", "application/json"), two, 2).body,
            "{\"translations\":[{\"translation\":\"x\",\"score\":-0.25},"
            "{\"translation\":\"y\",\"score\":-1.0}]}\n");
}

TEST(RequestLines, SaysWhichLineIsWrong) {
  expect_refused("fine\nno\xff", "text/plain", 400, "line 2: byte 3, 0xff, is not valid UTF-8");
  expect_refused("{\"text\":\"a\"}\n{\"txt\":\"a\"}", "application/json", 400,
                 "line 2: unknown key txt; did you mean text?");
  expect_refused("{\"text\":", "application/json", 400, "line 1: not JSON");
  expect_refused("{\"text\":\"\\ud800\"}", "application/json", 400, "line 1: not JSON");
  expect_refused("{\"text\": ü}", "application/json", 400,
                 "line 1: not JSON");  // cut in a character
  expect_refused("[1]", "application/json", 400, "line 1: expected an object");
  expect_refused("{\"text\":1}", "application/json", 400, "line 1: expected a string as text");
  expect_refused("{\"text\":\"a\"}\n\n", "application/json", 400, "line 2: not JSON");
}

TEST(RequestLines, RefusesWhatIsTooLongTooManyOrOfAnotherType) {
  expect_refused("four\nfives", "text/plain", 413, "line 2: 5 bytes, expected at most 4",
                 {.line_bytes = 4});
  expect_refused("{\"text\":\"fives\"}", "application/json", 413, "line 1: 5 bytes",
                 {.line_bytes = 4});
  expect_refused("{\"text\":\"a\",\"id\":\"" + std::string(2000, 'x') + "\"}", "application/json",
                 413, "line 1: ", {.line_bytes = 4});
  expect_refused("1\n2\n3", "text/plain", 413, "expected at most 2 lines", {.lines = 2});
  expect_refused("a=b", "application/x-www-form-urlencoded", 415, "expected text/plain");
}

}  // namespace
}  // namespace lockstep
