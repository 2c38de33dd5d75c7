#include "commands/models/serve.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>

#include "base/log.h"
#include "commands/models/translation_model.h"
#include "commands/process/process_setup.h"
#include "dist/rank/network.h"
#include "serve/translation_server.h"
#include "tasks/translator.h"

namespace lockstep {

namespace {

struct ServeArguments : TranslationArguments {
  std::string listen = "127.0.0.1";
  int64_t port = 8080;
  int64_t queue = 4096, max_line = 2000, max_request = 1 << 20, connections = 256;
  double batch_wait = 3, request_timeout = 10, grace = 10;  // ms, s, s
};

// Decodes batches with the weights of a run, a batch in one thread.
class BatchTranslator : public LineDecoder {
 public:
  BatchTranslator(const TranslationUse& model, int64_t n_best)
      : translator_(model.translator()), n_best_(std::max<int64_t>(1, n_best)) {
    translator_->translate({}, n_best_);  // more translations than the beam holds: now
  }

  int64_t workers() const { return translator_->on_cpu() ? at::get_num_threads() : 1; }
  int64_t batch_tokens() const { return translator_->batch_tokens(); }

  void prepare_thread() const override { at::set_num_threads(1); }

  std::vector<int32_t> encode(const std::string& line) const override {
    return std::move(translator_->encode({line}).front());
  }

  std::vector<std::vector<TranslatedLine>> decode(
      const std::vector<std::vector<int32_t>>& sources) const override {
    std::vector<std::vector<TranslatedLine>> out;
    for (const auto& of_line : translator_->decode(sources, n_best_)) {
      std::vector<TranslatedLine>& lines = out.emplace_back();
      for (const Hypothesis& hypothesis : of_line) {
        lines.push_back(
            {translator_->text(hypothesis), hypothesis.score, std::ssize(hypothesis.ids)});
      }
    }
    return out;
  }

 private:
  std::unique_ptr<Translator> translator_;
  int64_t n_best_;
};

std::chrono::milliseconds in_milliseconds(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

void add_limits(CommandLine& app, ServeArguments& a) {
  app.add_option("--batch-wait", a.batch_wait,
                 "milliseconds to wait for other requests, while there were some a moment ago")
      ->non_negative()
      ->capture_default_str();
  app.add_option("--queue", a.queue, "lines that wait at most; more are answered with 503")
      ->positive()
      ->capture_default_str();
  app.add_option("--max-line", a.max_line, "bytes of a line at most")
      ->positive()
      ->capture_default_str();
  app.add_option("--max-request", a.max_request, "bytes of a request's body at most")
      ->positive()
      ->capture_default_str();
  app.add_option("--connections", a.connections, "open at most; more are answered with 503")
      ->positive()
      ->capture_default_str();
  app.add_option("--request-timeout", a.request_timeout,
                 "seconds within which a request must be complete")
      ->positive()
      ->capture_default_str();
  app.add_option("--grace", a.grace, "seconds for what is under way when a signal comes")
      ->non_negative()
      ->capture_default_str();
}

Descriptor listen_for(const ServeArguments& a) {
  return Descriptor(listen_on(a.listen, static_cast<int>(a.port),
                              {.who = "the server",
                               .port_in_use = "end it, or choose another --port (0: a free one)",
                               .no_address = "--listen: an address of this machine"}));
}

void warn_if_open(const std::string& address) {
  const std::vector<std::string> numbers = addresses_of(address);
  if (addresses_elsewhere(address).empty() && !numbers.empty()) return;
  log_warning("{} is no loopback address: whoever reaches it is served, without password and TLS",
              address);
}

std::string url_of(const ServeArguments& a, int port) {
  const bool v6 = a.listen.find(':') != std::string::npos;
  return fmt::format("http://{}:{}", v6 ? "[" + a.listen + "]" : a.listen, port);
}

TranslationServerOptions options_of(const ServeArguments& a) {
  TranslationServerOptions out;
  out.http.limits.body_bytes = static_cast<uint64_t>(a.max_request);
  out.http.connections = static_cast<std::size_t>(a.connections);
  out.http.request = in_milliseconds(a.request_timeout);
  out.queue.lines = a.queue;
  out.queue.wait = std::chrono::microseconds(std::llround(a.batch_wait * 1000));
  out.line_bytes = a.max_line;
  out.n_best = a.n_best;
  out.grace = in_milliseconds(a.grace);
  return out;
}

}  // namespace

int serve(const Arguments& arguments) {
  ServeArguments a;
  CommandLine app(
      "Translates what it is sent by HTTP: POST /translate, text or JSON Lines (docs/serving.md).",
      "lockstep serve");
  add_translation_options(app, a, "answer with so many translations a line");
  app.add_option("--port", a.port, "0: a free one, which is printed")
      ->range(0, 65535)
      ->capture_default_str();
  app.add_option("--listen", a.listen, "the address to listen on; 0.0.0.0: all of this machine")
      ->capture_default_str();
  add_limits(app, a);
  if (!app.parse(arguments)) return kExitOk;

  const std::string name = take_run("serve", a);
  Descriptor listener = listen_for(a);  // a port in use is said at once
  const int port = port_of(listener.get());
  SignalQueue signals({SIGTERM, SIGINT});  // before there are threads, which inherit what it blocks
  prepare_process({});
  const SavedRun run = open_saved_run(name, a.run);
  const TranslationUse& model = translation_of(run, a.words.front());
  const BatchTranslator translator(model, a.n_best);
  TranslationServerOptions options = options_of(a);
  options.model_text = model.model_text();
  options.queue.workers = translator.workers();
  options.queue.batch_tokens = translator.batch_tokens();
  TranslationServer server(std::move(listener), translator, options);
  warn_if_open(a.listen);
  fmt::print("serving {} on {}\n", a.words.front(), url_of(a, port));
  std::fflush(stdout);
  return 128 + server.run(signals);
}

}  // namespace lockstep
