// Recognises the cloud that a machine belongs to, and reads what its metadata server says of an
// imminent end: AWS's spot/instance-action, Google's instance/preempted, Azure's scheduled events
// (docs/launch.md#spot-machines). Pure functions; launch/job/notice_watch.h asks.
#pragma once

#include <optional>
#include <string>

namespace lockstep {

enum class Cloud { kNone, kAws, kGoogle, kAzure };

const char* name_of(Cloud cloud);  // "no", "aws", "google", "azure"
// Returns the cloud of that name; throws ConfigError for a value of --spot that is none.
Cloud cloud_of_name(const std::string& name);

// What the firmware says of the machine (/sys/class/dmi/id); empty where it says nothing.
struct MachineLabels {
  std::string vendor, product, board_vendor, chassis_tag;
};
MachineLabels read_machine_labels();
Cloud cloud_of(const MachineLabels& labels);

struct SpotNotice {
  std::string action;   // "terminate", "stop", "hibernate", "preempted", "preempt"
  double deadline = 0;  // seconds since 1970
};

// What an answer of a metadata server says.
struct NoticeAnswer {
  std::optional<SpotNotice> notice;  // nothing: the machine stays, as far as this answer tells
  std::string trouble;               // why the answer was not understood; empty: it was
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// `now`, seconds since 1970, is for clouds and answers without a time.
NoticeAnswer read_aws_notice(const HttpAnswer& answer, double now);
NoticeAnswer read_google_notice(const HttpAnswer& answer, double now);
// Events of other machines of the same set are none of ours: `name` is this machine's as the cloud
// calls it; empty: unknown, every event counts.
NoticeAnswer read_azure_notice(const HttpAnswer& answer, const std::string& name, double now);

// What a host tells the launcher.
struct HostNotice {
  std::string cloud, action;
  double deadline = 0;      // seconds since 1970, by the host's clock
  double seconds_left = 0;  // until then
  bool withdrawn = false;   // the notice given before holds no longer
};

}  // namespace lockstep
