#include "data/fetch/http_request.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace lockstep {

namespace {

// The paths of CA certificates on various systems, as listed in Go's crypto/x509 (root_linux.go).
constexpr std::array<const char*, 5> kCaBundles = {
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, RHEL 6 to 9
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // RHEL 7 and later
    "/etc/ssl/ca-bundle.pem",                             // openSUSE
    "/etc/ssl/cert.pem"};                                 // Alpine

std::size_t on_header(char* data, std::size_t, std::size_t size, void* to) {
  auto& head = *static_cast<HttpHead*>(to);
  const std::string_view line(data, size);
  if (line.starts_with("HTTP/")) {
    head = {};
    const std::size_t at = line.find(' ');
    if (at != std::string_view::npos) {
      std::from_chars(line.data() + at + 1, line.data() + line.size(), head.status);
    }
    return size;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  head.headers[lower_ascii(line.substr(0, colon))] = trim(line.substr(colon + 1));
  return size;
}

}  // namespace

std::string ca_bundle() {
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  std::error_code ignored;
  for (const char* path : kCaBundles) {
    if (fs::exists(path, ignored)) return path;
  }
  return "";
}

HttpRequest::HttpRequest(const std::string& url, const std::vector<std::string>& headers,
                         const DownloadOptions& options)
    : url_(url) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  curl_.reset(curl_easy_init());
  if (ready != CURLE_OK || !curl_) throw MachineError("libcurl cannot be started");
  curl_slist* lines = nullptr;
  for (const std::string& line : headers) lines = curl_slist_append(lines, line.c_str());
  lines_.reset(lines);
  CURL* c = curl_.get();
  curl_easy_setopt(c, CURLOPT_URL, url.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500  // 7.85; the option before it is deprecated there
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(c, CURLOPT_PROTOCOLS, long(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_USERAGENT, "lockstep/" LOCKSTEP_VERSION);
  curl_easy_setopt(c, CURLOPT_HTTPHEADER, lines);
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, long(options.connect_timeout.count()));
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, long(options.stall_timeout.count()));
  const std::string authorities = ca_bundle();
  if (!authorities.empty()) curl_easy_setopt(c, CURLOPT_CAINFO, authorities.c_str());
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, text_.data());
}

std::string HttpRequest::problem(CURLcode code) const {
  return text_[0] != '\0' ? text_.data() : curl_easy_strerror(code);
}

void HttpRequest::check_curable(CURLcode code) const {
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
    throw ConfigError("{}: not a URL of http or https", url_);
  }
  const bool distrusted =
      code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
  if (!distrusted && code != CURLE_TOO_MANY_REDIRECTS) return;
  MachineError error("{}: cannot be fetched", url_);
  error.set_cause(problem(code));
  if (distrusted) {
    error.set_advice(
        "the certificates of this system (package ca-certificates), or SSL_CERT_FILE=FILE where a "
        "proxy has one of its own");
  }
  throw error;
}

std::string HttpHead::get(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

namespace {

std::size_t append_text(char* data, std::size_t, std::size_t size, void* text) {
  static_cast<std::string*>(text)->append(data, size);
  return size;
}

HttpAnswerText ask(const std::string& url, const std::vector<std::string>& headers,
                   const DownloadOptions& options, bool with_body) {
  constexpr int kMostRedirections = 10;
  std::string at = url, problem;
  std::chrono::milliseconds pause = options.first_pause;
  int attempts = 0;
  for (int redirections = 0; redirections <= kMostRedirections;) {
    HttpRequest request(at, headers, options);
    HttpAnswerText answer;
    HttpHead& head = answer.head;
    if (with_body) {
      curl_easy_setopt(request.handle(), CURLOPT_WRITEFUNCTION, append_text);
      curl_easy_setopt(request.handle(), CURLOPT_WRITEDATA, &answer.body);
    } else {
      curl_easy_setopt(request.handle(), CURLOPT_NOBODY, 1L);
    }
    curl_easy_setopt(request.handle(), CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(request.handle(), CURLOPT_HEADERDATA, &head);
    const CURLcode code = request.perform();
    request.check_curable(code);
    const std::string location = head.get("location");
    if (code == CURLE_OK && head.status / 100 == 3 && location.starts_with("/") &&
        !location.starts_with("//")) {
      at = at.substr(0, at.find('/', at.find("://") + 3)) + location;
      ++redirections;
      continue;
    }
    if (code == CURLE_OK && head.status < 500 && head.status != 429) return answer;
    problem = code == CURLE_OK ? fmt::format("the server answers {}", head.status)
                               : request.problem(code);
    if (++attempts >= options.attempts) break;
    std::this_thread::sleep_for(pause);
    pause *= 2;
  }
  MachineError error("{}: no answer", url);
  error.set_cause(problem.empty() ? "too many redirections" : problem);
  throw error;
}

}  // namespace

HttpHead http_head(const std::string& url, const std::vector<std::string>& headers,
                   const DownloadOptions& options) {
  return ask(url, headers, options, false).head;
}

HttpAnswerText http_text(const std::string& url, const std::vector<std::string>& headers,
                         const DownloadOptions& options) {
  return ask(url, headers, options, true);
}

}  // namespace lockstep
