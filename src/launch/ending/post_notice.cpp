#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "data/fetch/http_request.h"
#include "launch/ending/notifier.h"

namespace lockstep {

namespace {

using std::chrono::seconds;

constexpr int kTries = 3;
constexpr long kTryMilliseconds = 10000;

std::size_t drop(char*, std::size_t, std::size_t size, void*) { return size; }

std::string standard_input() {
  std::string out;
  char piece[4096];
  for (ssize_t size; (size = ::read(0, piece, sizeof piece)) > 0;) {
    out.append(piece, static_cast<std::size_t>(size));
  }
  return out;
}

// Returns why the notice was not taken; empty: it was.
struct Answer {
  std::string problem;
  bool again = false;  // another try may help
};

Answer post_once(const std::string& url, const std::string& body) {
  const DownloadOptions options;
  HttpRequest request(url, {"Content-Type: application/json"}, options);
  CURL* c = request.handle();
  curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, kTryMilliseconds);
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, kTryMilliseconds);
  curl_easy_setopt(c, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, drop);
  const CURLcode code = request.perform();
  if (code != CURLE_OK) return {request.problem(code), code != CURLE_URL_MALFORMAT};
  long status = 0;
  curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
  if (status / 100 == 2) return {};
  return {fmt::format("the server answers {}", status), status == 429 || status >= 500};
}

}  // namespace

void post_notice() {
  const auto order = nlohmann::json::parse(standard_input(), nullptr, false);
  if (!order.is_object() || !order.contains("url") || !order.contains("body")) {
    throw ConfigError("lockstep notify: expected {{\"url\": ..., \"body\": ...}}");
  }
  const auto url = order["url"].get<std::string>(), body = order["body"].get<std::string>();
  Answer answer;
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) std::this_thread::sleep_for(seconds(i));
    answer = post_once(url, body);
    if (answer.problem.empty()) return;
    if (!answer.again) break;
  }
  throw MachineError("{}", answer.problem);
}

}  // namespace lockstep
