// Reads a cloud's instances, as its own command line prints them in JSON:
//   aws ec2 describe-instances                          (also any --query that yields instances)
//   gcloud compute instances list --format=json
//   az vm list --show-details --output json
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "launch/hosts/host_list.h"

namespace lockstep {

// Returns the running instances, in the order of the file, with one slot each. ssh gets the public
// name or address where there is one, traffic the private address. A host's name is its Name tag or
// name, or the instance's identifier where several share one. Throws ConfigError with line and
// column for text that is not JSON, for JSON of another shape, and when nothing runs.
std::vector<Host> read_instances(const std::filesystem::path& path);
// Likewise for the text itself; `place` names it in errors.
std::vector<Host> instances_in(const std::string& text, const std::string& place);

// Runs a command by the shell and returns what it prints. Throws MachineError, with its last words,
// when it fails or takes longer than `limit`. It gets no input.
std::string output_of_command(const std::string& command, std::chrono::seconds limit);

}  // namespace lockstep
