// Reads a cloud's instances, as its own command line prints them in JSON:
//   aws ec2 describe-instances                          (also any --query that yields instances)
//   gcloud compute instances list --format=json
//   az vm list --show-details --output json
#pragma once

#include <filesystem>
#include <vector>

#include "launch/hosts/host_list.h"

namespace lockstep {

// Returns the running instances, in the order of the file, with one slot each. ssh gets the public
// name or address where there is one, traffic the private address. A host's name is its Name tag or
// name, or the instance's identifier where several share one. Throws ConfigError with line and
// column for text that is not JSON, for JSON of another shape, and when nothing runs.
std::vector<Host> read_instances(const std::filesystem::path& path);

}  // namespace lockstep
