// Defines the messages between launcher and agent over a Channel, and their encoding: control
// messages are JSON, a rank's output is bytes after its rank and stream.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "launch/ending/power_watch.h"
#include "launch/job/rank_set.h"
#include "launch/job/spot_notice.h"

namespace lockstep {

enum MessageKind : char {
  // From the launcher.
  kPrepare = 'p',    // PrepareOrder; answered by kPrepared or kError
  kOpenStore = 'o',  // the address to listen on; answered by kStoreOpen or kError
  kStart = 's',      // StartOrder; answered by kError on failure
  kStop = 't',       // StopOrder
  kKill = 'k',
  kAskCopies = 'c',  // a run folder; answered by kCopies
  kPowerOff = 'q',   // in so many milliseconds; answered by kDone
  kStandDown = 'n',  // this machine stays on; answered by kDone
  // From the agent.
  kHello = 'H',       // AgentHello; the first message
  kPrepared = 'P',    // Prepared
  kStoreOpen = 'O',   // the port
  kOutput = 'W',      // RankBytes
  kOutputEnd = 'E',   // RankBytes without any
  kReport = 'R',      // RankBytes: a line; the stream has no meaning
  kRankEnd = 'X',     // RankEndMessage
  kRankKilled = 'K',  // the rank
  kIdle = 'I',
  kTold = 'T',    // the signal that asked the agent to stop
  kNotice = 'N',  // HostNotice
  kError = 'F',   // RemoteFailure
  kCopies = 'C',  // RunCopies
  kDone = 'D',
  // Heartbeat, both ways, every second.
  kBeat = 'b',
};

// The interval between heartbeats of each end.
inline constexpr std::chrono::seconds kBeatEvery{1};

struct ProcessId {
  int pid = 0;
  uint64_t started = 0;  // ticks after boot, from /proc/PID/stat: detects a reused pid
};

struct AgentHello {
  std::string version, libtorch = "";
  std::string machine = "";      // dist/rank/machine_key.h: equal for agents on one machine
  std::string ssh_address = "";  // that ssh connected to; empty without ssh
  std::vector<std::string> addresses = {};  // of its interfaces, without loopback
  int cores = 0, gpus = 0;
  ProcessId process = {};
};

struct PrepareOrder {
  std::string folder;     // to work in; "~/..." is below the home of the agent's user
  std::string program;    // to start there; empty: lockstep itself
  std::string interface;  // to use for traffic; empty: the route decides
  std::string towards;    // address of another host; empty: all ranks are on this machine
  PowerOrder power = {};  // when the machine is to be switched off
};

struct Prepared {
  std::string address, interface;  // towards other hosts; empty: all ranks are on this machine
};

struct StopOrder {
  int64_t grace_milliseconds = 0;
  bool tell = true;
};

struct RankBytes {
  int rank = 0;
  Stream stream = kStandardOutput;
  std::string_view bytes;
};

struct RankEndMessage {
  int rank = 0, status = 0;
  bool told = false;
};

struct RemoteFailure {
  int code = kExitMachine;
  std::string text = "";
};

// Encode and decode each kind of message. decode() throws MachineError for a payload that encode()
// did not write.
std::string encode(const AgentHello& message);
std::string encode(const PrepareOrder& message);
std::string encode(const Prepared& message);
std::string encode(const StartOrder& message);
std::string encode(const StopOrder& message);
std::string encode(const RankBytes& message);
std::string encode(const RankEndMessage& message);
std::string encode(const RemoteFailure& message);
std::string encode(const HostNotice& message);
std::string encode_number(int64_t number);

template <typename Message>
Message decode(std::string_view payload);
int64_t decode_number(std::string_view payload);

}  // namespace lockstep
