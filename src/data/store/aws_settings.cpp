#include "data/store/aws_settings.h"

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/fetch/http_request.h"

namespace lockstep {

namespace {

using Clock = std::chrono::steady_clock;
using Profile = std::map<std::string, std::string>;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path aws_file(const char* name, const char* otherwise) {
  const std::string given = variable(name);
  return given.empty() ? fs::path(variable("HOME")) / ".aws" / otherwise : fs::path(given);
}

// Returns the keys of a section of an INI file; empty where there is neither.
Profile section_of(const fs::path& file, const std::string& section) {
  Profile out;
  std::error_code absent;
  if (!fs::is_regular_file(file, absent)) return out;
  bool within = false;
  for (const std::string& line : read_lines(file)) {
    const std::string_view text = trim(line);
    if (text.starts_with('[')) {
      within = trim(text.substr(1, text.find(']') - 1)) == section;
    } else if (within && !text.starts_with('#') && text.find('=') != std::string_view::npos) {
      const std::size_t at = text.find('=');
      out[std::string(trim(text.substr(0, at)))] = trim(text.substr(at + 1));
    }
  }
  return out;
}

Profile profile() {
  std::string name = variable("AWS_PROFILE");
  if (name.empty()) name = "default";
  Profile out = section_of(aws_file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), name);
  const std::string section = name == "default" ? name : "profile " + name;
  out.merge(section_of(aws_file("AWS_CONFIG_FILE", "config"), section));
  return out;
}

std::size_t append_body(char* data, std::size_t, std::size_t size, void* to) {
  static_cast<std::string*>(to)->append(data, size);
  return size;
}

// Asks the instance's metadata server; empty where there is none or it refuses.
std::string ask_instance(const std::string& path, const std::string& method,
                         const std::string& header) {
  std::string base = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT"), body;
  if (base.empty()) base = "http://169.254.169.254";
  while (base.ends_with('/')) base.pop_back();
  HttpRequest request(base + path, {header}, {.connect_timeout = std::chrono::seconds(1)});
  CURL* c = request.handle();
  curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(c, CURLOPT_TIMEOUT, 5L);
  curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, append_body);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &body);
  long status = 0;
  if (request.perform() != CURLE_OK) return "";
  curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
  return status == 200 ? body : "";
}

// Returns the credentials of the instance's role, at most five minutes old; an empty key: none.
AwsSettings role_of_instance() {
  static std::mutex mutex;
  static AwsSettings kept;
  static Clock::time_point until;
  const std::lock_guard<std::mutex> lock(mutex);
  if (variable("AWS_EC2_METADATA_DISABLED") == "true") return {};
  if (Clock::now() < until) return kept;
  kept = {};
  const std::string token =
      ask_instance("/latest/api/token", "PUT", "X-aws-ec2-metadata-token-ttl-seconds: 300");
  if (token.empty()) return kept;
  const std::string with = "X-aws-ec2-metadata-token: " + token;
  const std::string folder = "/latest/meta-data/iam/security-credentials/";
  const std::string role(trim(ask_instance(folder, "GET", with)));
  if (role.empty()) return kept;
  const auto answer =
      nlohmann::json::parse(ask_instance(folder + role, "GET", with), nullptr, false);
  if (!answer.is_object()) return kept;
  kept.key = answer.value("AccessKeyId", "");
  kept.secret = answer.value("SecretAccessKey", "");
  kept.token = answer.value("Token", "");
  kept.source = "the role " + role + " of this instance";
  until = Clock::now() + std::chrono::minutes(5);
  return kept;
}

std::string first_of(std::initializer_list<std::string> values) {
  for (const std::string& value : values) {
    if (!value.empty()) return value;
  }
  return "";
}

}  // namespace

AwsSettings find_aws_settings() {
  Profile file = profile();
  AwsSettings out{.key = variable("AWS_ACCESS_KEY_ID"),
                  .secret = variable("AWS_SECRET_ACCESS_KEY"),
                  .token = variable("AWS_SESSION_TOKEN"),
                  .source = "the environment"};
  if (out.key.empty() || out.secret.empty()) {
    out.key = file["aws_access_key_id"];
    out.secret = file["aws_secret_access_key"];
    out.token = file["aws_session_token"];
    out.source = aws_file("AWS_SHARED_CREDENTIALS_FILE", "credentials").string();
  }
  if (out.key.empty() || out.secret.empty()) out = role_of_instance();
  if (out.key.empty() || out.secret.empty()) {
    ConfigError error("S3: no credentials");
    error.set_cause(
        "neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor ~/.aws/credentials, nor a role "
        "of "
        "this instance");
    error.set_advice(
        "lockstep launch -x AWS_ACCESS_KEY_ID -x AWS_SECRET_ACCESS_KEY hands them on; "
        "see docs/training.md");
    throw error;
  }
  out.region = first_of(
      {variable("AWS_REGION"), variable("AWS_DEFAULT_REGION"), file["region"], "us-east-1"});
  out.endpoint = first_of(
      {variable("AWS_ENDPOINT_URL_S3"), variable("AWS_ENDPOINT_URL"), file["endpoint_url"]});
  while (out.endpoint.ends_with('/')) out.endpoint.pop_back();
  return out;
}

}  // namespace lockstep
