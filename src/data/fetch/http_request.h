// A single HTTP request with libcurl and the settings that all requests of lockstep share. Proxies
// are those of the environment (http_proxy, https_proxy, no_proxy).
#pragma once

#include <curl/curl.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/fetch/download.h"

namespace lockstep {

// Returns the file with the CA certificates against which servers are verified: the one that
// SSL_CERT_FILE or CURL_CA_BUNDLE names, else this system's; empty if there is none. (A libcurl
// that was built on another system only knows that system's path.)
std::string ca_bundle();

class HttpRequest {
 public:
  // `headers` are added to the request. Throws MachineError when libcurl cannot be started.
  HttpRequest(const std::string& url, const std::vector<std::string>& headers,
              const DownloadOptions& options);

  CURL* handle() const { return curl_.get(); }
  CURLcode perform() { return curl_easy_perform(curl_.get()); }
  std::string problem(CURLcode code) const;  // describes a failed request to the user
  // Throws for a failure that another try does not cure: ConfigError when the URL is not one of
  // http or https, MachineError when the server's certificate is not trusted or the redirections
  // are too many.
  void check_curable(CURLcode code) const;

 private:
  std::string url_;
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> lines_{nullptr, curl_slist_free_all};
  std::unique_ptr<CURL, void (*)(CURL*)> curl_{nullptr, curl_easy_cleanup};
  std::array<char, CURL_ERROR_SIZE> text_{};
};

struct HttpHead {
  int64_t status = 0;
  std::map<std::string, std::string> headers;      // names in lower case
  std::string get(const std::string& name) const;  // empty when absent
};

struct HttpAnswerText {
  HttpHead head;
  std::string body;
};

// Sends GET and returns the answer with its body, for short answers such as JSON; otherwise as
// http_head().
HttpAnswerText http_text(const std::string& url, const std::vector<std::string>& headers,
                         const DownloadOptions& options);

// Sends HEAD and returns the answer. Redirections within the host are followed, other redirections
// are returned. Retries like download(). Throws MachineError when no answer comes, and what
// HttpRequest::check_curable() throws.
HttpHead http_head(const std::string& url, const std::vector<std::string>& headers,
                   const DownloadOptions& options);

}  // namespace lockstep
