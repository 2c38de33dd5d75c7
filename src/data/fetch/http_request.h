// One request over HTTP by libcurl, with what all of lockstep's have in common. Proxies are those
// of the environment (http_proxy, https_proxy, no_proxy).
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

// The file with the certificates of authorities that servers are checked against: what
// SSL_CERT_FILE or CURL_CA_BUNDLE name, else where this system has them; empty when it has none. A
// libcurl that came from another system knows only that one's place.
std::string ca_bundle();

class HttpRequest {
 public:
  // `headers` are sent along. Throws MachineError when libcurl cannot be started.
  HttpRequest(const std::string& url, const std::vector<std::string>& headers,
              const DownloadOptions& options);

  CURL* handle() const { return curl_.get(); }
  CURLcode perform() { return curl_easy_perform(curl_.get()); }
  std::string problem(CURLcode code) const;  // of a request that failed, for people

 private:
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> lines_{nullptr, curl_slist_free_all};
  std::unique_ptr<CURL, void (*)(CURL*)> curl_{nullptr, curl_easy_cleanup};
  std::array<char, CURL_ERROR_SIZE> text_{};
};

struct HttpHead {
  int64_t status = 0;
  std::map<std::string, std::string> headers;      // names in lower case
  std::string get(const std::string& name) const;  // empty when absent
};

// The answer to HEAD; redirections within the host are followed, others are the answer. Tries
// again as download() does. Throws MachineError when no answer comes.
HttpHead http_head(const std::string& url, const std::vector<std::string>& headers,
                   const DownloadOptions& options);

}  // namespace lockstep
