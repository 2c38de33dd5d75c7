#include "serve/translation_server.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "base/error.h"
#include "dist/rank/network.h"
#include "support/http_client.h"
#include "unit/serve/gated_decoder.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

// A server in a thread of this process, told to stop by SIGUSR1 to that thread.
class Served {
 public:
  explicit Served(GatedDecoder& decoder, TranslationServerOptions options = {})
      : decoder_(decoder), signals_({SIGUSR1}) {
    Descriptor listener(listen_on("127.0.0.1", 0));
    port_ = port_of(listener.get());
    server_.emplace(std::move(listener), decoder, options);
    thread_ = std::thread([this] {
      try {
        signal_ = server_->run(signals_);
      } catch (const MachineError& error) {
        failure_ = error.describe();
      }
    });
  }
  ~Served() { stop(); }

  int port() const { return port_; }
  void ask_to_stop() { ::kill(::getpid(), SIGUSR1); }  // blocked in all threads but the queue's
  // Waits until it has stopped; returns what was wrong.
  std::string wait() {
    thread_.join();
    server_.reset();
    return failure_;
  }
  int signal() const { return signal_; }

 private:
  void stop() {
    decoder_.open();
    if (!thread_.joinable()) return;
    ask_to_stop();
    thread_.join();
  }

  GatedDecoder& decoder_;
  SignalQueue signals_;
  int port_ = 0, signal_ = 0;
  std::string failure_;
  std::optional<TranslationServer> server_;
  std::thread thread_;
};

double metric(int port, const std::string& name) {
  const std::string text = HttpClient(port).get("/metrics").body;
  const std::size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + name.size() + 2, nullptr);
}

// Waits until a figure of /metrics has that value; false: not within 20 s.
bool reaches(int port, const std::string& name, double value) {
  for (int i = 0; i < 2000; ++i) {
    if (metric(port, name) == value) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

TEST(TranslationServer, AnswersRequestsOfOneConnectionInTheirOrder) {
  GatedDecoder decoder;
  Served served(decoder);
  HttpClient client(served.port());
  EXPECT_EQ(client.post("a\nb\n").body, "A\nB\n");
  client.send_request("POST", "/translate", "first");  // three at once, without waiting
  client.send_request("GET", "/health");
  client.send_request("POST", "/translate", "{\"text\":\"third\",\"id\":3}", "application/json");
  EXPECT_EQ(client.read_answer().body, "FIRST\n");
  EXPECT_NE(client.read_answer().body.find("\"status\":\"ok\""), std::string::npos);
  EXPECT_EQ(client.read_answer().body, "{\"id\":3,\"translation\":\"THIRD\",\"score\":-1.5}\n");
}

TEST(TranslationServer, KnowsItsPathsAndTheirMethods) {
  GatedDecoder decoder;
  Served served(decoder);
  HttpClient client(served.port());
  EXPECT_EQ(client.get("/nothing").status, 404);
  const HttpAnswer wrong = client.get("/translate");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_NE(wrong.header.find("\r\nAllow: POST\r\n"), std::string::npos) << wrong.header;
  client.send_request("HEAD", "/health");
  const HttpAnswer head = client.read_answer(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(client.get("/metrics").status, 200);  // nothing of a body was left over
  client.send_request("POST", "/health", "x");
  EXPECT_EQ(client.read_answer().status, 405);
  EXPECT_EQ(client.post("a=b", "application/x-www-form-urlencoded").status, 415);
  EXPECT_EQ(client.post("no \xff").status, 400);
  EXPECT_EQ(client.post("still served").body, "STILL SERVED\n");
  client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 404);
  EXPECT_TRUE(client.ended());
}

TEST(TranslationServer, DecodesRequestsOfSeveralClientsInOneBatch) {
  GatedDecoder decoder(false);
  Served served(decoder);
  HttpClient first(served.port());
  first.send_request("POST", "/translate", "first");
  ASSERT_TRUE(decoder.wait_for_batches(1));
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<HttpClient>(served.port()));
    clients.back()->send_request("POST", "/translate", "number " + std::to_string(i));
  }
  ASSERT_TRUE(reaches(served.port(), "lockstep_lines_waiting", 8));
  decoder.open();
  EXPECT_EQ(first.read_answer().body, "FIRST\n");
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(clients[i]->read_answer().body, fmt::format("NUMBER {}\n", i));
  }
  EXPECT_EQ(decoder.batches().size(), 2U);
  EXPECT_EQ(metric(served.port(), "lockstep_shared_batches_total"), 1);
}

TEST(TranslationServer, AnswersRequestsThatAreNotCompleteInTimeWith408) {
  GatedDecoder decoder;
  TranslationServerOptions options;
  options.http.request = milliseconds(150);
  Served served(decoder, options);
  HttpClient header(served.port()), body(served.port()), whole(served.port());
  header.send("POST /translate HTTP/1.1\r\nHos");
  body.send("POST /translate HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf");
  EXPECT_EQ(whole.post("others go on").body, "OTHERS GO ON\n");
  EXPECT_EQ(header.read_answer().status, 408);
  EXPECT_TRUE(header.ended());
  EXPECT_EQ(body.read_answer().status, 408);
  EXPECT_TRUE(body.ended());
}

TEST(TranslationServer, RefusesWhatIsTooLarge) {
  GatedDecoder decoder;
  TranslationServerOptions options;
  options.http.limits.body_bytes = 1000;
  options.line_bytes = 20;
  Served served(decoder, options);
  HttpClient client(served.port());
  EXPECT_EQ(client.post(std::string(21, 'x')).status, 413);
  EXPECT_EQ(client.post("short enough").status, 200);
  // It answers although much of the body is on its way.
  const HttpAnswer answer = client.post(std::string(300'000, 'x'));
  EXPECT_EQ(answer.status, 413);
  EXPECT_TRUE(client.ended());
}

TEST(TranslationServer, TellsClientsToComeBackWhenTheQueueIsFull) {
  GatedDecoder decoder(false);
  TranslationServerOptions options;
  options.queue.lines = 2;
  Served served(decoder, options);
  HttpClient busy(served.port()), waiting(served.port()), late(served.port());
  busy.send_request("POST", "/translate", "busy");
  ASSERT_TRUE(decoder.wait_for_batches(1));
  waiting.send_request("POST", "/translate", "one\ntwo");
  ASSERT_TRUE(reaches(served.port(), "lockstep_lines_waiting", 2));
  const HttpAnswer answer = late.post("three");
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.header.find("\r\nRetry-After: 1\r\n"), std::string::npos) << answer.header;
  decoder.open();
  EXPECT_EQ(waiting.read_answer().body, "ONE\nTWO\n");
  EXPECT_EQ(late.post("three").body, "THREE\n");
  EXPECT_EQ(late.post("1\n2\n3").status, 413);  // it would never fit
}

TEST(TranslationServer, TurnsAwayMoreConnectionsThanItMayHave) {
  GatedDecoder decoder;
  TranslationServerOptions options;
  options.http.connections = 2;
  Served served(decoder, options);
  HttpClient first(served.port()), second(served.port());
  EXPECT_EQ(first.post("a").status, 200);
  EXPECT_EQ(second.post("b").status, 200);
  HttpClient third(served.port());
  EXPECT_EQ(third.read_answer().status, 503);
  EXPECT_TRUE(third.ended());
  third.close();
  EXPECT_EQ(first.post("c").body, "C\n");
}

TEST(TranslationServer, DropsTheWorkOfClientsThatLeave) {
  GatedDecoder decoder(false);
  Served served(decoder);
  HttpClient busy(served.port()), leaves(served.port()), stays(served.port());
  busy.send_request("POST", "/translate", "busy");
  ASSERT_TRUE(decoder.wait_for_batches(1));
  leaves.send_request("POST", "/translate", "not\nwanted");
  ASSERT_TRUE(reaches(served.port(), "lockstep_lines_waiting", 2));
  stays.send_request("POST", "/translate", "wanted");
  ASSERT_TRUE(reaches(served.port(), "lockstep_lines_waiting", 3));
  leaves.close();
  ASSERT_TRUE(reaches(served.port(), "lockstep_dropped_total", 1));
  EXPECT_EQ(metric(served.port(), "lockstep_lines_waiting"), 1);
  decoder.open();
  EXPECT_EQ(stays.read_answer().body, "WANTED\n");
  EXPECT_EQ(decoder.batches(), (std::vector<std::vector<std::string>>{{"busy"}, {"wanted"}}));
}

TEST(TranslationServer, LetsNobodyWaitForAClientThatDoesNotRead) {
  GatedDecoder decoder;
  TranslationServerOptions options;
  options.http.limits.body_bytes = 8 << 20;
  options.queue.lines = 4'000;
  options.http.stalled = milliseconds(300);
  Served served(decoder, options);
  std::string lines;
  for (int i = 0; i < 4'000; ++i) lines += std::string(1'900, 'x') + "\n";
  HttpClient slow(served.port(), 4096), other(served.port());
  slow.send_request("POST", "/translate", lines);
  ASSERT_TRUE(reaches(served.port(), "lockstep_translate_seconds_count", 1));
  EXPECT_EQ(other.post("quick").body, "QUICK\n");
  // It is given up after a while: all that is left are two connections, this client's and metric's.
  EXPECT_TRUE(reaches(served.port(), "lockstep_connections", 2));
}

TEST(TranslationServer, AnswersA500WhenDecodingFails) {
  GatedDecoder decoder;
  Served served(decoder);
  HttpClient client(served.port());
  EXPECT_EQ(client.post("fault").status, 500);
  EXPECT_EQ(client.post("fine").body, "FINE\n");
}

TEST(TranslationServer, FinishesWhatIsUnderWayWhenItIsToldToStop) {
  GatedDecoder decoder(false);
  Served served(decoder);
  HttpClient busy(served.port()), waiting(served.port()), idle(served.port());
  busy.send_request("POST", "/translate", "busy");
  ASSERT_TRUE(decoder.wait_for_batches(1));
  waiting.send_request("POST", "/translate", "waiting");
  ASSERT_TRUE(reaches(served.port(), "lockstep_lines_waiting", 1));
  served.ask_to_stop();
  EXPECT_TRUE(idle.ended());
  EXPECT_FALSE(HttpClient(served.port()).connected());
  decoder.open();
  EXPECT_EQ(busy.read_answer().body, "BUSY\n");
  const HttpAnswer answer = waiting.read_answer();
  EXPECT_EQ(answer.body, "WAITING\n");
  EXPECT_NE(answer.header.find("Connection: close"), std::string::npos);
  busy.close();
  waiting.close();
  EXPECT_EQ(served.wait(), "");
  EXPECT_EQ(served.signal(), SIGUSR1);
}

TEST(TranslationServer, GivesUpAfterTheGraceTime) {
  GatedDecoder decoder(false);
  TranslationServerOptions options;
  options.grace = milliseconds(100);
  Served served(decoder, options);
  HttpClient busy(served.port());
  busy.send_request("POST", "/translate", "busy");
  ASSERT_TRUE(decoder.wait_for_batches(1));
  served.ask_to_stop();
  std::thread later([&] {  // the batch itself is not interrupted
    std::this_thread::sleep_for(milliseconds(400));
    decoder.open();
  });
  const std::string failure = served.wait();
  later.join();
  EXPECT_NE(failure.find("requests unanswered after 0.1 s (--grace): 1"), std::string::npos)
      << failure;
}

}  // namespace
}  // namespace lockstep
