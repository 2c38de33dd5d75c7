// Fetches a run from its second home (train/mirror) in place of hosts.
#pragma once

#include <string>

#include "base/file.h"

namespace lockstep {

struct AddressFetch {
  std::string address;
  fs::path to;              // empty: the last part of the address
  std::string checkpoints;  // newest, all or none
};
// `lockstep fetch ADDRESS`. Returns the exit code.
int fetch_address(AddressFetch wanted);

}  // namespace lockstep
