#include "data/store/s3_store.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "data/store/s3_request.h"

namespace lockstep {

namespace {

constexpr int64_t kMostParts = 10'000;  // of an upload, by S3's rules
constexpr int kPartAttempts = 3;
constexpr std::chrono::milliseconds kPartPause{500};

bool is_md5(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string header_of(const S3Answer& answer, const std::string& name) {
  const auto found = answer.headers.find(name);
  return found == answer.headers.end() ? "" : found->second;
}

class S3Store : public ObjectStore {
 public:
  S3Store(const StoreAddress& address, const StoreOptions& options)
      : address_(address), options_(options) {}

  void put(const std::string& key, const fs::path& file, const std::string& sha256) override {
    const auto bytes = static_cast<int64_t>(fs::file_size(file));
    if (bytes > options_.part_bytes) return put_in_parts(key, file, bytes);
    const S3Answer answer =
        send({.method = "PUT", .key = whole(key), .file = file, .bytes = bytes, .sha256 = sha256});
    check_tag(answer, key, file);
  }

  bool get(const std::string& key, const fs::path& file, int64_t offset) override {
    std::FILE* out = std::fopen(file.c_str(), "ab");
    if (out == nullptr) throw MachineError("{}: cannot be written", file.string());
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> close(out, std::fclose);
    bool written = true;
    S3Request request{.key = whole(key)};
    if (offset > 0) request.range = fmt::format("{}-", offset);
    request.take = [&](const char* data, std::size_t size) {
      written = std::fwrite(data, 1, size, out) == size;
      return written;
    };
    const S3Answer answer = send_or_full(request, written, file);
    if (offset > 0 && answer.status == 200) {
      throw MachineError("{}/{}: the server knows no ranges", address_.text, key);
    }
    if (std::fflush(out) != 0) throw MachineError("{}: cannot be written", file.string());
    return answer.status != 404;
  }

  std::vector<StoredObject> list(const std::string& folder) override {
    std::vector<StoredObject> out;
    S3Request request{.query = {{"list-type", "2"}, {"encoding-type", "url"}}};
    const std::string top = whole("");
    request.query["prefix"] = folder.empty() ? top : whole(folder) + "/";
    for (;;) {
      const S3Answer answer = send(request);
      if (answer.body.find("<ListBucketResult") == std::string::npos) {
        throw MachineError("{}: what answers there is not S3", address_.text);
      }
      read_page(answer.body, top.size(), out);
      const std::string next = answer.element("NextContinuationToken");
      if (answer.element("IsTruncated") != "true" || next.empty()) return out;
      request.query["continuation-token"] = next;
    }
  }

  void remove(const std::string& key) override { send({.method = "DELETE", .key = whole(key)}); }

 private:
  std::string whole(const std::string& key) const {
    return address_.path.empty() ? key : address_.path + "/" + key;
  }
  S3Answer send(const S3Request& request) const { return send_s3(address_, options_, request); }

  S3Answer send_or_full(const S3Request& request, const bool& written, const fs::path& file) const {
    try {
      return send(request);
    } catch (const Error&) {
      if (!written) throw MachineError("{}: cannot be written: the disk is full", file.string());
      throw;
    }
  }

  static void read_page(const std::string& xml, std::size_t prefix,
                        std::vector<StoredObject>& out) {
    constexpr std::string_view kOpen = "<Contents>", kClose = "</Contents>";
    for (std::size_t at = 0; (at = xml.find(kOpen, at)) != std::string::npos;) {
      const std::size_t end = xml.find(kClose, at);
      if (end == std::string::npos) return;
      const std::string item = xml.substr(at, end - at);
      const std::string key = uri_decoded(S3Answer::element_of(item, "Key"));
      if (key.size() > prefix) {
        out.push_back({key.substr(prefix), std::atoll(S3Answer::element_of(item, "Size").c_str())});
      }
      at = end;
    }
  }

  // The tag of a plain object is its MD5, unless it is encrypted with a key of the customer's.
  void check_tag(const S3Answer& answer, const std::string& key, const fs::path& file) const {
    std::string tag = header_of(answer, "etag");
    std::erase(tag, '"');
    const std::string encrypted = header_of(answer, "x-amz-server-side-encryption");
    const bool customers =
        !header_of(answer, "x-amz-server-side-encryption-customer-algorithm").empty();
    if (!is_md5(tag) || encrypted.starts_with("aws:kms") || customers) return;
    std::string own;
    try {
      own = md5_of_file(file);
    } catch (const MachineError&) {
      return;  // this system forbids MD5
    }
    if (own != tag) {
      throw MachineError("{}/{}: what arrived is not what was sent (its MD5 is another)",
                         address_.text, key);
    }
  }

  void put_in_parts(const std::string& key, const fs::path& file, int64_t bytes) {
    const S3Answer begun = send({.method = "POST", .key = whole(key), .query = {{"uploads", ""}}});
    const std::string id = begun.element("UploadId");
    if (id.empty()) throw MachineError("{}: what answers there is not S3", address_.text);
    try {
      finish_parts(key, id, file, bytes);
    } catch (const Error&) {
      try {  // what was sent is paid for until it is given up
        const StoreOptions patient{.cancel = nullptr, .part_bytes = options_.part_bytes};
        send_s3(address_, patient,
                {.method = "DELETE", .key = whole(key), .query = {{"uploadId", id}}});
      } catch (const Error&) {
      }
      throw;
    }
  }

  void finish_parts(const std::string& key, const std::string& id, const fs::path& file,
                    int64_t bytes) {
    const int64_t part = std::max(options_.part_bytes, bytes / (kMostParts - 1) + 1);
    std::string list = "<CompleteMultipartUpload>";
    for (int64_t number = 1, at = 0; at < bytes; ++number, at += part) {
      const std::string tag =
          put_part({.method = "PUT",
                    .key = whole(key),
                    .query = {{"partNumber", std::to_string(number)}, {"uploadId", id}},
                    .file = file,
                    .offset = at,
                    .bytes = std::min(part, bytes - at)});
      list += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", number, tag);
    }
    const S3Answer done = send({.method = "POST",
                                .key = whole(key),
                                .query = {{"uploadId", id}},
                                .body = list + "</CompleteMultipartUpload>"});
    // S3 may find out after it has answered 200 that it failed.
    if (done.status != 200 || done.body.find("<Error>") != std::string::npos) {
      throw MachineError("{}/{}: the parts were not put together: {} {}", address_.text, key,
                         done.element("Code"), done.element("Message"));
    }
  }

  // Returns the part's tag.
  std::string put_part(const S3Request& request) const {
    for (int attempt = 1;; ++attempt) {
      try {
        const S3Answer answer = send(request);
        const std::string tag = header_of(answer, "etag");
        if (answer.status == 404 || tag.empty()) {
          throw MachineError("{}: the upload was given up by the server", address_.text);
        }
        return tag;
      } catch (const MachineError&) {
        const bool cancelled = options_.cancel != nullptr && options_.cancel->load();
        if (attempt >= kPartAttempts || cancelled) throw;
        std::this_thread::sleep_for(kPartPause * attempt);
      }
    }
  }

  StoreAddress address_;
  StoreOptions options_;
};

}  // namespace

std::unique_ptr<ObjectStore> open_s3_store(const StoreAddress& address,
                                           const StoreOptions& options) {
  find_aws_settings();  // what is missing is said before anything is sent
  return std::make_unique<S3Store>(address, options);
}

}  // namespace lockstep
