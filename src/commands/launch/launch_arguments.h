// The options of lockstep launch, as words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/shared/command_line.h"
#include "commands/shared/host_arguments.h"

namespace lockstep {

// As given; their meaning is checked later.
struct LaunchArguments {
  HostArguments hosts;
  std::string ranks, program, output_folder, folder, interface, only_ranks;
  std::vector<std::string> exported;
  double grace = 10, host_timeout = 60, host_poll = 10, silence = 5;
  int restarts = -1, min_hosts = 0;
  bool pin = false, push = false;
  bool detach = false;
  std::string spot = "auto";
  double replacement_wait = 1800;  // seconds
  bool find_hosts = false;         // what the launcher starts to ask for machines that came later
  std::string from;                // the host for the launcher
  std::vector<std::string> notify;
  std::string then, price, power_command;
  bool power_off = false, power_anyway = false;
  double power_after = 15;  // minutes
  std::optional<double> budget;
  double spent = 0;  // by earlier launchers of the job, as far as others know
  std::string job;   // whose launcher this is; empty: nobody's
};

// Returns false when help was asked for and printed.
bool parse_launch(const Arguments& words, LaunchArguments& given);

// The options that the launcher of a detached job is started with on its host.
Arguments options_for_host(const LaunchArguments& a);

}  // namespace lockstep
