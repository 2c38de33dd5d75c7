// Reads the configuration of a lab of virtual hosts from TOML (docs/netlab.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace lockstep {

inline constexpr const char* kControlHost = "control";  // where commands and launchers run
inline constexpr int kMostVirtualHosts = 64;

// The network between the hosts: one switch, with one line to each host.
struct LabNetwork {
  double delay_ms = 0, jitter_ms = 0;  // between any two hosts, one way
  double loss = 0;                     // share of packets
  double rate_mbit = 0;                // of each host's line, each way; 0: no limit
  double queue_ms = 50;
  int64_t mtu = 1500;
  std::string subnet = "10.77.0.0";  // a /24
  std::string control = "same";
  bool arp = false;
  int64_t seed = 1;
  void describe(Fields& f);
};

struct LabHosts {
  std::vector<std::string> names;
  bool sshd = true;
  std::string files = "shared";
  std::vector<std::string> contents;  // HERE:THERE, absolute paths
  bool decoy = false;
  double cpu = 0;                            // cores; 0: no limit
  std::vector<std::string> private_folders;  // absolute paths
  double disk_mb = 0;
  std::vector<std::string> sysctl;  // "net.ipv4.tcp_rmem=4096 131072 33554432"
  void describe(Fields& f);
  bool own_files() const { return files == "own"; }
};

// One host's own values; a value below 0 leaves the one for all hosts.
struct LabHost {
  std::string name = "";
  double rate_mbit = -1;
  double cpu = -1;
  std::string user = "root", home = "";  // empty home: /root, /home/USER
  std::string system = "/";              // a root whose system folders it begins with
  void describe(Fields& f);
};

// Says what changes on which paths: part of an event, and all of a [[link]].
struct LabChange {
  std::vector<std::string> hosts, to;  // paths between these; empty `to`: all other hosts
  std::string direction = "both";      // out: only what `hosts` send; in: only what they receive
  std::string network;                 // "data", "control" or "all"; empty: "data"
  double delay_ms = -1, jitter_ms = -1, loss = -1, rate_mbit = -1;  // below 0: unchanged
  void describe(Fields& f);
};

struct LabLink : LabChange {
  void describe(Fields& f) { LabChange::describe(f); }
};

struct LabEvent : LabChange {
  double at = 0;  // seconds since the schedule began
  std::string action;
  double lasts = 0;  // seconds until it is undone; 0: forever
  void describe(Fields& f);
};

struct LabConfig {
  LabNetwork network;
  LabHosts hosts;
  std::vector<LabHost> own;  // [[host]]
  std::vector<LabLink> links;
  std::vector<LabEvent> events;
  bool separate_control() const { return network.control == "separate"; }
  int index_of(const std::string& host) const;  // -1: unknown; the control host is last
  LabHost host(int index) const;                // its own values, or all defaults
  int size() const { return static_cast<int>(hosts.names.size()) + 1; }  // control included
};

// These throw ConfigError with all mistakes at once: file:line:column: key: what was expected.
LabConfig read_lab_config(const std::filesystem::path& path);
LabConfig read_lab_config(std::string_view toml, const std::string& name);
// Reads an event of `netlab set`: "action = 'cut'\nhosts = ['b']".
LabEvent read_lab_event(std::string_view toml, const LabConfig& lab);

}  // namespace lockstep
