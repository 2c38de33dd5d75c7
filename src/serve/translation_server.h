// The server of `lockstep serve`: HTTP in front of a queue of lines that are decoded together
// (docs/serving.md). One thread serves all connections, the queue's workers decode.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "base/descriptor.h"
#include "launch/processes/event_loop.h"
#include "launch/processes/signal_queue.h"
#include "serve/decoding_queue.h"
#include "serve/http_server.h"
#include "serve/request_lines.h"
#include "serve/service_figures.h"

namespace lockstep {

struct TranslationServerOptions {
  HttpServerOptions http;
  DecodingQueue::Options queue;
  int64_t line_bytes = 2000, n_best = 0;
  std::chrono::milliseconds grace{10'000};  // for requests under way when it is told to stop
  std::string model_text;                   // what /health says of the model
};

class TranslationServer : private HttpService {
 public:
  // `listener` listens; `decoder` must outlive this.
  TranslationServer(Descriptor listener, const LineDecoder& decoder,
                    const TranslationServerOptions& options);
  ~TranslationServer() override;

  // Serves until a signal comes and what was under way then is answered; returns the signal. Throws
  // MachineError when the grace time passes before that.
  int run(SignalQueue& signals);

 private:
  struct Open {
    RequestLines lines;
    Clock::time_point since;
  };

  void handle(uint64_t request, IncomingRequest message) override;
  void abandon(uint64_t request) override;
  void refused(int status) override { figures_.count_answer(status); }

  void translate(uint64_t request, const IncomingRequest& message);
  void answer(uint64_t request, const HttpResponse& response);
  void answer_finished();
  HttpResponse health() const;

  TranslationServerOptions options_;
  EventLoop loop_;
  Descriptor wake_;  // an eventfd that workers write to
  ServiceFigures figures_;
  std::map<uint64_t, Open> open_;  // requests whose lines are in the queue
  HttpServer http_;
  DecodingQueue queue_;
};

}  // namespace lockstep
