#include "launch/job/spot_notice.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace lockstep {

namespace {

using SpotJson = nlohmann::json;

constexpr double kGoogleSeconds = 30;  // from the notice to the end, as Google documents
constexpr double kAzureSeconds = 30;   // the least that Azure documents for Preempt
// The chassis of every machine of Azure, as Microsoft documents.
constexpr const char* kAzureTag = "7783-7084-3265-9085-8269-3286-77";
constexpr std::array kClouds{Cloud::kNone, Cloud::kAws, Cloud::kGoogle, Cloud::kAzure};

// Returns seconds since 1970 of a time in UTC, nothing when it is written in another way.
std::optional<double> time_of(const std::string& text, const char* format) {
  std::tm parts{};
  const char* end = ::strptime(text.c_str(), format, &parts);
  if (end == nullptr) return std::nullopt;
  return static_cast<double>(::timegm(&parts));
}

NoticeAnswer trouble(const char* what, const HttpAnswer& answer) {
  constexpr std::size_t kShown = 60;
  return {.notice = std::nullopt,
          .trouble = fmt::format("{} answered {}: {}", what, answer.status,
                                 trim(answer.body.substr(0, kShown)))};
}

std::string word_at(const SpotJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool concerns(const SpotJson& event, const std::string& name) {
  const auto resources = event.find("Resources");
  if (name.empty() || resources == event.end() || !resources->is_array()) return true;
  return resources->empty() ||
         std::find(resources->begin(), resources->end(), name) != resources->end();
}

}  // namespace

const char* name_of(Cloud cloud) {
  constexpr std::array kNames{"no", "aws", "google", "azure"};
  return kNames[static_cast<std::size_t>(cloud)];
}

Cloud cloud_of_name(const std::string& name) {
  for (Cloud cloud : kClouds) {
    if (name == name_of(cloud)) return cloud;
  }
  throw ConfigError("--spot {}: expected auto, no, aws, google or azure", name);
}

MachineLabels read_machine_labels() {
  const auto text = [](const char* name) -> std::string {
    try {
      return std::string(trim(read_file(fs::path("/sys/class/dmi/id") / name)));
    } catch (const Error&) {  // no firmware that says so, as on many ARM machines
      return "";
    }
  };
  return {.vendor = text("sys_vendor"),
          .product = text("product_name"),
          .board_vendor = text("board_vendor"),
          .chassis_tag = text("chassis_asset_tag")};
}

Cloud cloud_of(const MachineLabels& labels) {
  if (labels.vendor == "Amazon EC2" || labels.board_vendor == "Amazon EC2") return Cloud::kAws;
  if (labels.product == "Google Compute Engine") return Cloud::kGoogle;
  if (labels.chassis_tag == kAzureTag) return Cloud::kAzure;
  return Cloud::kNone;
}

NoticeAnswer read_aws_notice(const HttpAnswer& answer, double now) {
  constexpr const char* kWhat = "spot/instance-action";
  if (answer.status == 404) return {};
  const SpotJson json = SpotJson::parse(answer.body, nullptr, false);
  if (answer.status != 200 || !json.is_object()) return trouble(kWhat, answer);
  const std::string action = word_at(json, "action");
  const std::string text = word_at(json, "time");
  const std::optional<double> time = time_of(text, "%Y-%m-%dT%H:%M:%S");
  if (action.empty() || (!time && !text.empty())) return trouble(kWhat, answer);
  return {.notice = SpotNotice{action, time.value_or(now)}, .trouble = ""};
}

NoticeAnswer read_google_notice(const HttpAnswer& answer, double now) {
  const std::string word(trim(answer.body));
  if (answer.status == 200 && word == "FALSE") return {};
  if (answer.status != 200 || word != "TRUE") return trouble("instance/preempted", answer);
  return {.notice = SpotNotice{"preempted", now + kGoogleSeconds}, .trouble = ""};
}

NoticeAnswer read_azure_notice(const HttpAnswer& answer, const std::string& name, double now) {
  constexpr const char* kWhat = "scheduledevents";
  const SpotJson json = SpotJson::parse(answer.body, nullptr, false);
  const bool whole = answer.status == 200 && json.is_object() && json.contains("Events") &&
                     json["Events"].is_array();
  if (!whole) return trouble(kWhat, answer);
  NoticeAnswer out;
  for (const SpotJson& event : json["Events"]) {
    if (!event.is_object()) return trouble(kWhat, answer);
    const std::string type = word_at(event, "EventType");
    if ((type != "Preempt" && type != "Terminate") || !concerns(event, name)) continue;
    // Without a time the event has begun.
    const std::string text = word_at(event, "NotBefore");
    std::optional<double> time = time_of(text, "%a, %d %b %Y %H:%M:%S");
    if (!time && !text.empty()) return trouble(kWhat, answer);
    if (!time) time = word_at(event, "EventStatus") == "Started" ? now : now + kAzureSeconds;
    if (!out.notice || *time < out.notice->deadline) {
      out.notice = SpotNotice{lower_ascii(type), *time};
    }
  }
  return out;
}

}  // namespace lockstep
