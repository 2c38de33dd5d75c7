// Writes down virtual hosts as a cloud does, for `--instances`.
#pragma once

#include <nlohmann/json.hpp>

#include "support/hosts_apart.h"

namespace lockstep {

// As `aws ec2 describe-instances` prints them.
inline void write_instances(const HostsApart& hosts, const fs::path& file) {
  nlohmann::json list = nlohmann::json::array();
  for (const std::string& name : hosts.names()) {
    list.push_back({{"InstanceId", "i-0" + name},
                    {"State", {{"Code", 16}, {"Name", "running"}}},
                    {"PublicDnsName", name},
                    {"PrivateIpAddress", hosts.lab().address(name)},
                    {"Tags", {{{"Key", "Name"}, {"Value", name}}}}});
  }
  write_file(file, nlohmann::json{{"Reservations", {{{"Instances", list}}}}}.dump(2));
}

}  // namespace lockstep
