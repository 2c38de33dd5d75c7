#include "serve/translation_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::chrono::seconds kOneRequest{1};

struct Route {
  std::string_view path, methods;  // methods as the Allow header has them
};

constexpr std::array<Route, 3> kRoutes = {
    {{"/translate", "POST"}, {"/health", "GET, HEAD"}, {"/metrics", "GET, HEAD"}}};

bool allows(const Route& route, std::string_view method) {
  if (route.methods == "POST") return method == "POST";
  return method == "GET" || method == "HEAD";
}

Descriptor make_wake() {
  Descriptor out(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!out.open()) throw MachineError("no eventfd: {}", std::strerror(errno));
  return out;
}

// Returns the answer to a request that does not fit beside those that wait.
HttpResponse busy(const DecodingQueue::Figures& queue) {
  HttpResponse out = error_response(
      503, fmt::format("{} lines wait already (--queue)", with_commas(queue.waiting)));
  const double seconds =
      queue.lines_per_second > 0 ? static_cast<double>(queue.waiting) / queue.lines_per_second : 1;
  out.headers.emplace_back(
      "Retry-After", std::to_string(std::clamp<int64_t>(std::llround(std::ceil(seconds)), 1, 60)));
  return out;
}

}  // namespace

TranslationServer::TranslationServer(Descriptor listener, const LineDecoder& decoder,
                                     const TranslationServerOptions& options)
    : options_(options),
      wake_(make_wake()),
      http_(loop_, std::move(listener), options.http, *this),
      queue_(decoder, options.queue, [this] {
        const uint64_t one = 1;
        // It fails only where it is readable already.
        [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
      }) {
  loop_.watch(wake_.get(), POLLIN, [this] { answer_finished(); });
}

TranslationServer::~TranslationServer() = default;

int TranslationServer::run(SignalQueue& signals) {
  int signal = 0;
  Clock::time_point told;
  std::optional<Clock::time_point> last_moment;
  loop_.watch(signals.descriptor(), POLLIN, [&] {
    const int next = signals.next();
    if (next == 0) return;
    const Clock::time_point now = Clock::now();
    if (signal != 0) {  // often one request that is sent twice, to the process and to its group
      if (now - told > kOneRequest) last_moment = now;
      return;
    }
    signal = next;
    told = now;
    log_info("{}: requests to finish: {}", ::strsignal(signal), http_.unanswered());
    http_.stop_accepting();
    last_moment = now + options_.grace;
  });
  while (signal == 0 || http_.connections() > 0) {
    loop_.wait(earlier(http_.deadline(), last_moment));
    http_.expire();
    if (!last_moment || Clock::now() < *last_moment) continue;
    const std::size_t left = http_.unanswered();
    if (left == 0) break;
    loop_.forget(signals.descriptor());
    throw MachineError("stopped ({}) with requests unanswered after {:.1f} s (--grace): {}",
                       ::strsignal(signal),
                       std::chrono::duration<double>(Clock::now() - told).count(), left);
  }
  loop_.forget(signals.descriptor());
  const DecodingQueue::Figures done = queue_.figures();
  log_info("{} answers, {} lines in {} batches", with_commas(figures_.answers()),
           with_commas(done.lines), with_commas(done.batches));
  return signal;
}

void TranslationServer::handle(uint64_t request, IncomingRequest message) {
  const auto route = std::find_if(kRoutes.begin(), kRoutes.end(),
                                  [&](const Route& r) { return r.path == message.path; });
  if (route == kRoutes.end()) {
    return answer(request, error_response(404,
                                          "there are POST /translate, GET /health and "
                                          "GET /metrics"));
  }
  if (!allows(*route, message.method)) {
    HttpResponse response =
        error_response(405, fmt::format("{} takes {}", route->path, route->methods));
    response.headers.emplace_back("Allow", route->methods);
    return answer(request, response);
  }
  if (route->path == "/health") return answer(request, health());
  if (route->path == "/metrics") {
    return answer(request, {.content_type = "text/plain; version=0.0.4; charset=utf-8",
                            .body = figures_.text(queue_.figures(), http_.connections())});
  }
  translate(request, message);
}

void TranslationServer::translate(uint64_t request, const IncomingRequest& message) {
  try {
    Open open{read_request_lines(message, {options_.queue.lines, options_.line_bytes}),
              Clock::now()};
    std::vector<std::string> lines = std::move(open.lines.lines);
    if (!queue_.submit(request, std::move(lines))) return answer(request, busy(queue_.figures()));
    open_.emplace(request, std::move(open));
  } catch (const RefusedLines& refused) {
    answer(request, refused.response);
  } catch (const std::exception& error) {  // a request must not end the server
    log_warning("a request failed: {}", error.what());
    answer(request, error_response(500, "a bug; the server's log says more"));
  }
}

void TranslationServer::abandon(uint64_t request) {
  queue_.cancel(request);
  open_.erase(request);
  figures_.count_dropped();
}

void TranslationServer::answer(uint64_t request, const HttpResponse& response) {
  figures_.count_answer(response.status);
  http_.answer(request, response);
}

void TranslationServer::answer_finished() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t size = ::read(wake_.get(), &count, sizeof count);
  for (DecodingQueue::Finished& finished : queue_.take_finished()) {
    const auto open = open_.find(finished.job);
    if (open == open_.end()) continue;  // its client left meanwhile
    HttpResponse response =
        finished.failure.empty()
            ? write_translations(open->second.lines, finished.lines, options_.n_best)
            : error_response(500, "decoding failed; the server's log says why");
    if (finished.failure.empty()) {
      figures_.count_translated(
          std::chrono::duration<double>(Clock::now() - open->second.since).count());
    }
    open_.erase(open);
    answer(finished.job, response);
  }
}

HttpResponse TranslationServer::health() const {
  const nlohmann::ordered_json body{{"status", "ok"},
                                    {"version", LOCKSTEP_VERSION},
                                    {"model", options_.model_text},
                                    {"threads", options_.queue.workers}};
  return {.body = body.dump() + "\n"};
}

}  // namespace lockstep
