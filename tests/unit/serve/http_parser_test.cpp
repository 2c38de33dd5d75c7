#include "serve/http_parser.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

const std::string kPost =
    "POST /translate?x=1 HTTP/1.1\r\nHost: a\r\nContent-Type: Text/Plain; charset=utf-8\r\n"
    "Content-Length: 5\r\n\r\nhello";

int status_of(std::string bytes, HttpParser::Limits limits = {}) {
  HttpParser parser(limits);
  const auto fault = parser.feed(bytes);
  return fault ? fault->status : parser.done() ? 200 : 0;
}

TEST(HttpParser, TakesARequestWhateverThePiecesItComesIn) {
  for (std::size_t piece : {std::size_t{1}, std::size_t{7}, kPost.size()}) {
    HttpParser parser({});
    std::string input;
    for (std::size_t at = 0; at < kPost.size(); at += piece) {
      EXPECT_FALSE(parser.done());
      input += kPost.substr(at, piece);
      ASSERT_FALSE(parser.feed(input));
    }
    ASSERT_TRUE(parser.done()) << piece;
    const IncomingRequest request = parser.take();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/translate");
    EXPECT_EQ(request.content_type, "text/plain");
    EXPECT_EQ(request.body, "hello");
    EXPECT_TRUE(request.keep_alive);
  }
}

TEST(HttpParser, LeavesTheNextRequestInTheInput) {
  HttpParser parser({});
  std::string input = kPost + "GET /health HTTP/1.0\r\n\r\n";
  ASSERT_FALSE(parser.feed(input));
  EXPECT_EQ(parser.take().path, "/translate");
  ASSERT_FALSE(parser.feed(input));
  const IncomingRequest second = parser.take();
  EXPECT_EQ(second.path, "/health");
  EXPECT_FALSE(second.keep_alive);  // the rule of HTTP/1.0
  EXPECT_EQ(input, "");
}

TEST(HttpParser, TakesBodiesInChunks) {
  HttpParser parser({});
  std::string input =
      "POST http://a:1/translate HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  ASSERT_FALSE(parser.feed(input));
  ASSERT_TRUE(parser.done());
  const IncomingRequest request = parser.take();
  EXPECT_EQ(request.body, "abcde");
  EXPECT_EQ(request.path, "/translate");
}

TEST(HttpParser, RefusesWhatIsTooLargeAsSoonAsItIsKnown) {
  const std::string announced = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n";
  EXPECT_EQ(status_of(announced, {.body_bytes = 10}), 413);
  EXPECT_EQ(status_of(announced, {.body_bytes = 11}), 0);
  const std::string chunks =
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nabcdefghijk\r\n";
  EXPECT_EQ(status_of(chunks, {.body_bytes = 10}), 413);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(2000, 'x'),
                      {.header_bytes = 1000}),
            431);
}

TEST(HttpParser, RefusesWhatIsNoRequest) {
  EXPECT_EQ(status_of("hello\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);  // no Host
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/3.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n"),
            400);
}

TEST(HttpParser, SaysOnceThatTheClientWaitsForContinue) {
  HttpParser parser({});
  std::string input =
      "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n";
  ASSERT_FALSE(parser.feed(input));
  EXPECT_TRUE(parser.take_expectation());
  EXPECT_FALSE(parser.take_expectation());
  input = "ab";
  ASSERT_FALSE(parser.feed(input));
  EXPECT_EQ(parser.take().body, "ab");
}

}  // namespace
}  // namespace lockstep
