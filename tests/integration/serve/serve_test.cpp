// `lockstep serve` as a process, on a network that a tiny corpus has trained.
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "support/background.h"
#include "support/http_client.h"
#include "support/tiny_runs.h"

namespace lockstep {
namespace {

// The server in the background, once it has said where it listens.
class Server {
 public:
  explicit Server(const std::string& words) : process_("serve --port 0 " + words, output_) {
    const auto start = std::chrono::steady_clock::now();
    while (port_ == 0 && seconds_since(start) < 60 && !process_.wait(0.02)) {
      const std::string text = output();
      const std::size_t at = text.find("http://127.0.0.1:");
      if (at != std::string::npos && text.find('\n', at) != std::string::npos) {
        port_ = std::atoi(text.c_str() + at + 17);
      }
    }
  }

  int port() const { return port_; }  // 0: it did not start
  std::string output() const { return fs::exists(output_) ? read_file(output_) : ""; }
  Background& process() { return process_; }

 private:
  TemporaryFolder folder_;
  fs::path output_ = folder_.path() / "output";
  Background process_;
  int port_ = 0;
};

class ServeTest : public TinyRuns {
 protected:
  static void SetUpTestSuite() {
    TinyRuns::SetUpTestSuite();
    const ProgramResult trained =
        run_lockstep(fmt::format("train {0}/tiny.toml run.folder={0}/run training.steps=60",
                                 folder_->path().string()),
                     "OMP_NUM_THREADS=1");
    if (trained.exit_code != 0) failure_ += trained.errors;
  }

  std::string source() const { return read_file(folder_->path() / "test.en"); }
  // What `lockstep translate` makes of the same lines.
  std::string translated(const std::string& words) const {
    return run_lockstep(fmt::format("translate {} --input {}/test.en {}", run("run").string(),
                                    folder_->path().string(), words),
                        "OMP_NUM_THREADS=1")
        .output;
  }
};

TEST_F(ServeTest, TranslatesAsTranslateDoesWhoeverElseAsks) {
  for (const std::string words : {"", "--n-best 2 decoding.precision=int8 decoding.beam_size=3"}) {
    const std::string expected = translated(words);
    ASSERT_NE(expected, "");
    Server server(run("run").string() + " " + words);
    ASSERT_NE(server.port(), 0) << server.output();
    std::vector<std::string> answers(6);
    std::vector<std::thread> clients;
    for (std::string& answer : answers) {
      clients.emplace_back([&] {
        HttpClient client(server.port());
        for (int i = 0; i < 3; ++i) answer = client.post(source()).body;
      });
    }
    for (std::thread& client : clients) client.join();
    for (const std::string& answer : answers) EXPECT_EQ(answer, expected);
  }
}

TEST_F(ServeTest, FinishesRequestsUnderWayAtSigtermAndExitsWith143) {
  Server server(run("run").string());
  ASSERT_NE(server.port(), 0) << server.output();
  std::string body;
  for (int i = 0; i < 20; ++i) body += source();
  HttpClient client(server.port()), idle(server.port());
  client.send_request("POST", "/translate", body);
  std::string metrics;
  const auto start = std::chrono::steady_clock::now();
  while (seconds_since(start) < 20) {  // until its lines are being decoded
    metrics = HttpClient(server.port()).get("/metrics").body;
    if (metrics.find("\nlockstep_batches_total 0\n") == std::string::npos) break;
  }
  ::kill(server.process().process(), SIGTERM);
  const HttpAnswer answer = client.read_answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(std::count(answer.body.begin(), answer.body.end(), '\n'), 600);
  client.close();
  EXPECT_TRUE(idle.ended());
  EXPECT_EQ(server.process().wait(20), 143) << server.output();
}

TEST_F(ServeTest, ExitsWith4WhereThePortIsTaken) {
  Server server(run("run").string());
  ASSERT_NE(server.port(), 0) << server.output();
  const ProgramResult second =
      run_lockstep(fmt::format("serve {} --port {}", run("run").string(), server.port()));
  EXPECT_EQ(second.exit_code, 4);
  EXPECT_NE(
      second.errors.find(fmt::format("the server cannot listen on 127.0.0.1:{}", server.port())),
      std::string::npos)
      << second.errors;
  EXPECT_NE(second.errors.find("choose another --port"), std::string::npos) << second.errors;
}

TEST_F(ServeTest, SaysWhenOthersThanThisMachineReachIt) {
  Server server(run("run").string() + " --listen 127.0.0.1");
  EXPECT_EQ(server.output().find("warning"), std::string::npos) << server.output();
  TemporaryFolder folder;
  Background open(fmt::format("serve {} --port 0 --listen 0.0.0.0", run("run").string()),
                  folder.path() / "output");
  std::string output;
  const auto start = std::chrono::steady_clock::now();
  while (seconds_since(start) < 60 && output.find("http://0.0.0.0:") == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (fs::exists(folder.path() / "output")) output = read_file(folder.path() / "output");
  }
  EXPECT_NE(output.find("without password and TLS"), std::string::npos) << output;
}

}  // namespace
}  // namespace lockstep
