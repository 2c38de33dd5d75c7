// tests/support/s3_server.py and the environment that leads to it, for the time of a test.
#pragma once

#include <cstdlib>
#include <map>
#include <string>

#include "support/local_server.h"

namespace lockstep {

class S3Environment {
 public:
  // Serves the buckets that are folders of `folder`.
  explicit S3Environment(const fs::path& folder) : server_(folder, "{}", "s3_server.py") {
    set("AWS_ENDPOINT_URL", server_.url());
    set("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
    set("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
    set("AWS_REGION", "us-east-1");
    set("AWS_EC2_METADATA_DISABLED", "true");
    set("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials");
    set("AWS_CONFIG_FILE", "/nowhere/config");
    for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN", "AWS_PROFILE"})
      clear(name);
  }
  ~S3Environment() {
    for (const auto& [name, value] : before_) {
      if (value.first) {
        ::setenv(name.c_str(), value.second.c_str(), 1);
      } else {
        ::unsetenv(name.c_str());
      }
    }
  }
  S3Environment(const S3Environment&) = delete;
  S3Environment& operator=(const S3Environment&) = delete;

  void set(const std::string& name, const std::string& value) {
    note(name);
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  void clear(const std::string& name) {
    note(name);
    ::unsetenv(name.c_str());
  }
  const LocalServer& server() const { return server_; }

 private:
  void note(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    before_.try_emplace(name, value != nullptr, value == nullptr ? "" : value);
  }

  LocalServer server_;
  std::map<std::string, std::pair<bool, std::string>> before_;
};

}  // namespace lockstep
