// Serves as `lockstep serve` does, with a decoder that only sleeps: 20 ms a batch and 1 ms a line,
// in one thread. It shows what the queue makes of a load (benchmarks/serve_load) whatever else the
// machine does.
//   serve_queue BATCH_WAIT_MS
// Prints its port, and serves until SIGTERM.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "dist/rank/network.h"
#include "serve/translation_server.h"

namespace {

using namespace lockstep;

class Sleeper : public LineDecoder {
 public:
  std::vector<int32_t> encode(const std::string& line) const override {
    return std::vector<int32_t>(1 + line.size() / 4);
  }
  std::vector<std::vector<TranslatedLine>> decode(
      const std::vector<std::vector<int32_t>>& sources) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + std::ssize(sources)));
    return {sources.size(), {{"x", 0, 1}}};
  }
};

}  // namespace

int main(int argc, char** argv) {
  SignalQueue signals({SIGTERM});
  const Sleeper decoder;
  TranslationServerOptions options;
  options.queue.batch_tokens = 4096;
  options.queue.wait = std::chrono::milliseconds(argc > 1 ? std::atoi(argv[1]) : 3);
  Descriptor listener(listen_on("127.0.0.1", 0));
  fmt::print("{}\n", port_of(listener.get()));
  std::fflush(stdout);
  TranslationServer(std::move(listener), decoder, options).run(signals);
}
