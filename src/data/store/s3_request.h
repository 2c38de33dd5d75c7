// Requests of S3's REST interface, signed (s3_signature.h) and sent.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "data/store/aws_settings.h"
#include "data/store/object_store.h"

namespace lockstep {

struct S3Request {
  std::string method = "GET";
  std::string key;                           // within the bucket; empty: the bucket itself
  std::map<std::string, std::string> query;  // sorted, not encoded
  std::string body;                          // of a small request
  fs::path file = {};                        // or a part of a file
  int64_t offset = 0, bytes = 0;             // of that part
  std::string sha256;                        // of the body or part; empty: computed
  std::string range;                         // of GET: "100-"
  std::function<bool(const char*, std::size_t)> take = {};  // of a 2xx answer; else it is `body`
};

struct S3Answer {
  int64_t status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  // Returns the text of the first element of that name in an XML body, or nothing.
  std::string element(const std::string& name) const { return element_of(body, name); }
  static std::string element_of(const std::string& xml, const std::string& name);
};

// Percent-encodes all but the unreserved characters of RFC 3986; with `slashes`, '/' stays.
std::string uri_encoded(const std::string& text, bool slashes);
std::string uri_decoded(const std::string& text);

// Sends one request with the credentials of now. Returns answers of 2xx, 404 for a key (not for a
// bucket) and 416; throws ConfigError or MachineError for all others. Uses path-style addresses
// with an endpoint of its own, virtual-hosted ones with Amazon's.
S3Answer send_s3(const StoreAddress& address, const StoreOptions& options,
                 const S3Request& request);

}  // namespace lockstep
