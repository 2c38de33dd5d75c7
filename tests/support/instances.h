// Writes down virtual hosts as a cloud does, for `--instances`.
#pragma once

#include <nlohmann/json.hpp>

#include "support/hosts_apart.h"

namespace lockstep {

// As `aws ec2 describe-instances` prints those of the names.
inline void write_instances(const HostsApart& hosts, const fs::path& file,
                            const std::vector<std::string>& names) {
  nlohmann::json list = nlohmann::json::array();
  for (const std::string& name : names) {
    list.push_back({{"InstanceId", "i-0" + name},
                    {"State", {{"Code", 16}, {"Name", "running"}}},
                    {"PublicDnsName", name},
                    {"PrivateIpAddress", hosts.lab().address(name)},
                    {"Tags", {{{"Key", "Name"}, {"Value", name}}}}});
  }
  write_file(file, nlohmann::json{{"Reservations", {{{"Instances", list}}}}}.dump(2));
}
inline void write_instances(const HostsApart& hosts, const fs::path& file) {
  write_instances(hosts, file, hosts.names());
}

}  // namespace lockstep
