#include "data/store/s3_signature.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/date.h"
#include "base/digest.h"
#include "base/text.h"

namespace lockstep {

namespace {

struct UrlParts {
  std::string authority, path, query;
};

UrlParts parts_of(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t host = scheme == std::string::npos ? 0 : scheme + 3;
  const std::size_t path = std::min(url.find_first_of("/?", host), url.size());
  const std::size_t query = std::min(url.find('?', path), url.size());
  return {url.substr(host, path - host), path == query ? "/" : url.substr(path, query - path),
          query == url.size() ? "" : url.substr(query + 1)};
}

std::string_view text_of(const HmacSha256& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string hash_of(const std::string& text) { return sha256_hex(std::as_bytes(std::span(text))); }

}  // namespace

std::vector<std::string> s3_signature(const SignedRequest& request, const AwsSettings& aws,
                                      std::time_t now) {
  const UrlParts url = parts_of(request.url);
  const std::string time = utc_date(now, "%Y%m%dT%H%M%SZ"), day = time.substr(0, 8);
  std::vector<std::pair<std::string, std::string>> headers = {
      // sorted
      {"host", url.authority},
      {"x-amz-content-sha256", request.sha256},
      {"x-amz-date", time}};
  if (!aws.token.empty()) headers.emplace_back("x-amz-security-token", aws.token);
  std::vector<std::string> lines, names;
  std::string canonical = request.method + "\n" + url.path + "\n" + url.query + "\n";
  for (const auto& [name, value] : headers) {
    canonical += name + ":" + value + "\n";
    lines.push_back(name + ": " + value);
    names.push_back(name);
  }
  const std::string signed_names = join(names, ";");
  canonical += "\n" + signed_names + "\n" + request.sha256;
  const std::string scope = day + "/" + aws.region + "/s3/aws4_request";
  const std::string text = "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + hash_of(canonical);
  HmacSha256 key = hmac_sha256("AWS4" + aws.secret, day);
  for (const char* part : {aws.region.c_str(), "s3", "aws4_request"}) {
    key = hmac_sha256(text_of(key), part);
  }
  lines.push_back("Authorization: AWS4-HMAC-SHA256 Credential=" + aws.key + "/" + scope +
                  ",SignedHeaders=" + signed_names +
                  ",Signature=" + to_hex(hmac_sha256(text_of(key), text)));
  return lines;
}

}  // namespace lockstep
