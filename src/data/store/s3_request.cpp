#include "data/store/s3_request.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <ctime>

#include "base/descriptor.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "data/fetch/http_request.h"
#include "data/store/s3_signature.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostErrorBytes = 1 << 20;

struct Exchange {
  const S3Request& request;
  const StoreOptions& options;
  Descriptor file;
  int64_t sent = 0;
  S3Answer answer;
};

std::size_t read_body(char* to, std::size_t size, std::size_t count, void* self) {
  auto& x = *static_cast<Exchange*>(self);
  const auto room = static_cast<int64_t>(size * count);
  const int64_t left = x.request.bytes - x.sent;
  const ssize_t n = ::pread(x.file.get(), to, static_cast<std::size_t>(std::min(room, left)),
                            x.request.offset + x.sent);
  if (n < 0 || (n == 0 && left > 0)) return CURL_READFUNC_ABORT;
  x.sent += n;
  return static_cast<std::size_t>(n);
}

int seek_body(void* self, curl_off_t offset, int origin) {
  if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  static_cast<Exchange*>(self)->sent = offset;
  return CURL_SEEKFUNC_OK;
}

std::size_t take_header(char* data, std::size_t, std::size_t size, void* self) {
  S3Answer& answer = static_cast<Exchange*>(self)->answer;
  const std::string_view line(data, size);
  if (line.starts_with("HTTP/")) {
    answer = {};
    const std::size_t at = line.find(' ');
    if (at != std::string_view::npos) {
      answer.status = std::atoll(std::string(line.substr(at + 1, 3)).c_str());
    }
  } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
    answer.headers[lower_ascii(line.substr(0, colon))] = trim(line.substr(colon + 1));
  }
  return size;
}

std::size_t take_body(char* data, std::size_t, std::size_t size, void* self) {
  auto& x = *static_cast<Exchange*>(self);
  if (x.answer.status / 100 == 2 && x.request.take) return x.request.take(data, size) ? size : 0;
  const bool whole = x.answer.status / 100 == 2;  // a list may be large, an error may not
  if (whole || x.answer.body.size() < kMostErrorBytes) x.answer.body.append(data, size);
  return size;
}

int look(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const std::atomic<bool>* cancel = static_cast<Exchange*>(self)->options.cancel;
  return cancel != nullptr && cancel->load() ? 1 : 0;
}

std::string hash_of(const S3Request& request) {
  if (!request.sha256.empty()) return request.sha256;
  Digest digest = Digest::sha256();
  digest.update(request.body.data(), request.body.size());
  if (request.file.empty()) return digest.hex();
  const Descriptor file(::open(request.file.c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<char> buffer(1 << 20);
  for (int64_t done = 0; done < request.bytes;) {
    const auto most = std::min<int64_t>(request.bytes - done, static_cast<int64_t>(buffer.size()));
    const ssize_t n =
        ::pread(file.get(), buffer.data(), static_cast<std::size_t>(most), request.offset + done);
    if (n <= 0) throw MachineError("{}: cannot be read", request.file.string());
    digest.update(buffer.data(), static_cast<std::size_t>(n));
    done += n;
  }
  return digest.hex();
}

std::string url_of(const StoreAddress& address, const AwsSettings& aws, const S3Request& request) {
  const bool own = !aws.endpoint.empty();
  std::string url = own ? aws.endpoint + "/" + address.host
                        : fmt::format("https://{}.s3.{}.amazonaws.com", address.host, aws.region);
  url += "/" + uri_encoded(request.key, true);
  char between = '?';
  for (const auto& [name, value] : request.query) {
    url += between + uri_encoded(name, false) + "=" + uri_encoded(value, false);
    between = '&';
  }
  return url;
}

// Says what S3's error means. Only what the person can do something about is a ConfigError.
[[noreturn]] void fail_s3(const StoreAddress& address, const AwsSettings& aws,
                          const S3Answer& answer) {
  const std::string code = answer.element("Code"), message = answer.element("Message");
  const std::string& at = address.text;
  auto region = answer.headers.find("x-amz-bucket-region");
  const std::string where =
      region != answer.headers.end() ? region->second : answer.element("Region");
  auto refuse = [&](auto error, const std::string& advice) {
    error.set_cause(code.empty() ? fmt::format("the server answers {}", answer.status)
                                 : fmt::format("{}: {}", code, message));
    if (!advice.empty()) error.set_advice(advice);
    return error;
  };
  if (code == "ExpiredToken" || code == "TokenRefreshRequired" || code == "ExpiredTokenException") {
    throw refuse(ConfigError("{}: the credentials have expired", at), "new ones in " + aws.source);
  }
  if (code == "RequestTimeTooSkewed") {
    throw refuse(ConfigError("{}: the clock of this machine is wrong", at), "set it (ntp)");
  }
  if (code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch" || code == "InvalidToken" ||
      answer.status == 401) {
    throw refuse(ConfigError("{}: the credentials of {} are not accepted", at, aws.source), "");
  }
  if (code == "NoSuchBucket" || answer.status == 404) {
    throw refuse(ConfigError("{}: there is no bucket {}", at, address.host),
                 "make it, or look at AWS_ENDPOINT_URL");
  }
  if (answer.status / 100 == 3 || code == "AuthorizationHeaderMalformed" ||
      code == "IllegalLocationConstraintException") {
    throw refuse(ConfigError("{}: the bucket is elsewhere{}", at,
                             where.empty() ? "" : ", in the region " + where),
                 where.empty() ? "AWS_REGION, AWS_ENDPOINT_URL" : "AWS_REGION=" + where);
  }
  if (answer.status == 403) {
    throw refuse(ConfigError("{}: no right to do this with the credentials of {}", at, aws.source),
                 "s3:PutObject, s3:GetObject, s3:DeleteObject, s3:ListBucket are needed");
  }
  if (answer.status == 507 || code == "QuotaExceeded" || code == "XMinioStorageFull") {
    throw refuse(MachineError("{}: it is full", at), "");
  }
  throw refuse(MachineError("{}: the server answers {}", at, answer.status), "");
}

void set_body(CURL* c, Exchange& x) {
  const S3Request& request = x.request;
  if (!request.file.empty()) {
    x.file = Descriptor(::open(request.file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!x.file.open()) throw MachineError("{}: cannot be read", request.file.string());
    curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.bytes));
    curl_easy_setopt(c, CURLOPT_READFUNCTION, read_body);
    curl_easy_setopt(c, CURLOPT_READDATA, &x);
    curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, seek_body);
    curl_easy_setopt(c, CURLOPT_SEEKDATA, &x);
    curl_easy_setopt(c, CURLOPT_UPLOAD_BUFFERSIZE, 1L << 20);
  } else if (request.method == "POST") {
    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, request.body.c_str());
  }
  if (request.method != "GET") curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (!request.range.empty()) curl_easy_setopt(c, CURLOPT_RANGE, request.range.c_str());
}

}  // namespace

std::string S3Answer::element_of(const std::string& xml, const std::string& name) {
  const std::string open = "<" + name + ">";
  const std::size_t start = xml.find(open), end = xml.find("</" + name + ">", start);
  if (start == std::string::npos || end == std::string::npos) return "";
  std::string out = xml.substr(start + open.size(), end - start - open.size());
  for (const auto& [entity, character] : {std::pair{"&quot;", "\""},
                                          {"&apos;", "'"},
                                          {"&lt;", "<"},
                                          {"&gt;", ">"},
                                          {"&#34;", "\""},
                                          {"&amp;", "&"}}) {
    for (std::size_t at = 0; (at = out.find(entity, at)) != std::string::npos; ++at) {
      out.replace(at, std::string_view(entity).size(), character);
    }
  }
  return out;
}

std::string uri_encoded(const std::string& text, bool slashes) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = std::isalnum(byte) != 0 || c == '-' || c == '.' || c == '_' || c == '~';
    out += plain || (slashes && c == '/') ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

std::string uri_decoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool coded = text[i] == '%' && i + 2 < text.size();
    out += coded ? static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16))
           : text[i] == '+' ? ' '
                            : text[i];
    if (coded) i += 2;
  }
  return out;
}

S3Answer send_s3(const StoreAddress& address, const StoreOptions& options,
                 const S3Request& request) {
  const AwsSettings aws = find_aws_settings();
  const std::string url = url_of(address, aws, request);
  std::vector<std::string> headers =
      s3_signature({request.method, url, hash_of(request)}, aws, std::time(nullptr));
  // Without it libcurl calls the body a form, which some servers then take apart.
  if (request.method == "POST") headers.push_back("Content-Type: application/xml");
  HttpRequest http(url, headers, {});
  CURL* c = http.handle();
  Exchange x{request, options, {}, 0, {}};
  curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);  // a key may have parts . and ..
  curl_easy_setopt(c, CURLOPT_HTTP_VERSION, long(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(c, CURLOPT_HEADERDATA, &x);
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &x);
  curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, look);
  curl_easy_setopt(c, CURLOPT_XFERINFODATA, &x);
  curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 1L << 18);
  set_body(c, x);
  const CURLcode code = http.perform();
  const int64_t status = x.answer.status;
  // A server may refuse while the body is still being sent; what it says comes first.
  if (status >= 300 && status != 416 &&
      !(status == 404 && !request.key.empty() && x.answer.element("Code") != "NoSuchBucket")) {
    fail_s3(address, aws, x.answer);
  }
  if (code == CURLE_OK) return std::move(x.answer);
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
    throw ConfigError("AWS_ENDPOINT_URL={}: not a URL of http or https", aws.endpoint);
  }
  MachineError error("{}: {} cannot be reached", address.text,
                     aws.endpoint.empty() ? "S3 of " + aws.region : aws.endpoint);
  error.set_cause(http.problem(code));
  error.set_advice("look at the network, AWS_ENDPOINT_URL and AWS_REGION");
  throw error;
}

}  // namespace lockstep
