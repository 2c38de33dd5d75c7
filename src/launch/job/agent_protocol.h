// What launcher and agent say to each other over a Channel, and how it is written: control messages
// as JSON, a rank's output as bytes behind its rank and stream.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "launch/job/rank_set.h"

namespace lockstep {

enum MessageKind : char {
  // From the launcher.
  kPrepare = 'p',    // PrepareOrder; answered by kPrepared or kError
  kOpenStore = 'o',  // the address to listen on; answered by kStoreOpen or kError
  kStart = 's',      // StartOrder; kError when it cannot be
  kStop = 't',       // StopOrder
  kKill = 'k',
  // From the agent.
  kHello = 'H',       // AgentHello; first of all
  kPrepared = 'P',    // Prepared
  kStoreOpen = 'O',   // the port
  kOutput = 'W',      // RankBytes
  kOutputEnd = 'E',   // RankBytes without any
  kReport = 'R',      // RankBytes: a line; stream says nothing
  kRankEnd = 'X',     // RankEndMessage
  kRankKilled = 'K',  // the rank
  kIdle = 'I',
  kTold = 'T',   // the signal that asked the agent to go
  kError = 'F',  // RemoteFailure
  // Both ways, every second: I am here.
  kBeat = 'b',
};

// How often each end says that it is there.
inline constexpr std::chrono::seconds kBeatEvery{1};

struct ProcessId {
  int pid = 0;
  uint64_t started = 0;  // ticks after boot, of /proc/PID/stat: tells a later one of that number
};

struct AgentHello {
  std::string version, libtorch = "";
  std::string machine = "";      // dist/collectives/machines.h: equal for agents on one machine
  std::string ssh_address = "";  // that ssh came in on; empty without ssh
  std::vector<std::string> addresses = {};  // of its interfaces, loopback left out
  int cores = 0, gpus = 0;
  ProcessId process = {};
};

struct PrepareOrder {
  std::string folder;     // to work in
  std::string program;    // to start there; empty: lockstep itself
  std::string interface;  // to talk over; empty: the route decides
  std::string towards;    // address of another host; empty: all ranks are on this machine
};

struct Prepared {
  std::string address, interface;  // towards the others; empty: all ranks are on this machine
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

// Each kind of message to its payload and back. decode() throws MachineError for what encode() did
// not write.
std::string encode(const AgentHello& message);
std::string encode(const PrepareOrder& message);
std::string encode(const Prepared& message);
std::string encode(const StartOrder& message);
std::string encode(const StopOrder& message);
std::string encode(const RankBytes& message);
std::string encode(const RankEndMessage& message);
std::string encode(const RemoteFailure& message);
std::string encode_number(int64_t number);

template <typename Message>
Message decode(std::string_view payload);
int64_t decode_number(std::string_view payload);

}  // namespace lockstep
