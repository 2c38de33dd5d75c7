#include "launch/hosts/instance_list.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "launch/processes/child_process.h"

namespace lockstep {

namespace {

using CloudJson = nlohmann::json;

struct Instance {
  std::string name, id, state;
  std::string public_name, public_address, private_address;
  bool running = false;
};

// Returns the text at a key, empty where there is none: clouds omit keys, or write null.
std::string text_at(const CloudJson& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const CloudJson& child(const CloudJson& object, const char* key) {
  static const CloudJson nothing = CloudJson::object();
  auto found = object.find(key);
  return found != object.end() ? *found : nothing;
}

const CloudJson& first_of(const CloudJson& object, const char* key) {
  static const CloudJson nothing = CloudJson::object();
  const CloudJson& list = child(object, key);
  return list.is_array() && !list.empty() && list[0].is_object() ? list[0] : nothing;
}

// "10.0.0.4,10.0.1.4" -> "10.0.0.4"
std::string first_word(const std::string& list) {
  return std::string(trim(split(list, ',').front()));
}

Instance from_aws(const CloudJson& item) {
  Instance out{.id = text_at(item, "InstanceId"),
               .state = text_at(child(item, "State"), "Name"),
               .public_name = text_at(item, "PublicDnsName"),
               .public_address = text_at(item, "PublicIpAddress"),
               .private_address = text_at(item, "PrivateIpAddress")};
  for (const CloudJson& tag : child(item, "Tags")) {
    if (tag.is_object() && text_at(tag, "Key") == "Name") out.name = text_at(tag, "Value");
  }
  out.running = out.state == "running";
  return out;
}

Instance from_google(const CloudJson& item) {
  const CloudJson& network = first_of(item, "networkInterfaces");
  Instance out{.name = text_at(item, "name"),
               .id = text_at(item, "id"),
               .state = text_at(item, "status"),
               .public_address = text_at(first_of(network, "accessConfigs"), "natIP"),
               .private_address = text_at(network, "networkIP")};
  out.running = out.state == "RUNNING";
  return out;
}

Instance from_azure(const CloudJson& item) {
  Instance out{.name = text_at(item, "name"),
               .id = text_at(item, "vmId"),
               .state = text_at(item, "powerState"),
               .public_name = first_word(text_at(item, "fqdns")),
               .public_address = first_word(text_at(item, "publicIps")),
               .private_address = first_word(text_at(item, "privateIps"))};
  out.running = out.state == "VM running";
  return out;
}

// Collects all objects in nested lists, whatever lists the cloud or a --query put around them.
void collect(const CloudJson& json, std::vector<const CloudJson*>& out) {
  if (json.is_array()) {
    for (const CloudJson& item : json) collect(item, out);
  } else if (json.is_object() && json.contains("Reservations")) {
    collect(json["Reservations"], out);
  } else if (json.is_object() && json.contains("Instances")) {
    collect(json["Instances"], out);
  } else {
    out.push_back(&json);
  }
}

Instance read_one(const CloudJson& item, const std::string& path, std::size_t number) {
  if (item.is_object() && item.contains("InstanceId")) return from_aws(item);
  if (item.is_object() && item.contains("networkInterfaces")) return from_google(item);
  if (item.is_object() && item.contains("powerState")) return from_azure(item);
  ConfigError error("{}: entry {} is no instance of AWS, Google or Azure", path, number);
  error.set_cause("it has neither InstanceId nor networkInterfaces nor powerState");
  error.set_advice(
      "aws ec2 describe-instances > FILE, gcloud compute instances list --format=json > FILE, "
      "or az vm list --show-details --output json > FILE");
  throw error;
}

CloudJson parse(const std::string& text, const std::string& place) {
  try {
    return CloudJson::parse(text);
  } catch (const CloudJson::out_of_range& error) {  // a number that is too large
    ConfigError problem("{}: not valid JSON", place);
    problem.set_cause(error.what());
    throw problem;
  } catch (const CloudJson::parse_error& error) {
    std::size_t at = std::min(text.size(), error.byte > 0 ? error.byte - 1 : 0);
    auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    std::size_t start = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    std::size_t column = at - (start == std::string::npos ? 0 : start + 1) + 1;
    throw ConfigError("{}:{}:{}: this is not JSON", place, line, column);
  }
}

// Returns "2 stopped, 1 terminated".
std::string count_states(const std::vector<Instance>& instances) {
  std::map<std::string, int> counts;
  for (const Instance& instance : instances) ++counts[instance.state];
  std::vector<std::string> parts;
  for (const auto& [state, count] : counts) {
    parts.push_back(fmt::format("{} {}", count, state.empty() ? "without a state" : state));
  }
  return join(parts, ", ");
}

// A tag may hold anything; a name on the command line must be a plain word.
bool is_plain(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '_' || c == '-';
  });
}

Host to_host(const Instance& instance, const std::map<std::string, int>& name_counts,
             const std::string& path) {
  bool good = is_plain(instance.name) && name_counts.at(instance.name) == 1;
  Host host{.name = good ? instance.name : instance.id, .state = "running"};
  host.address = instance.private_address;
  for (const std::string* name :
       {&instance.public_name, &instance.public_address, &instance.private_address}) {
    if (host.ssh_name.empty()) host.ssh_name = *name;
  }
  if (host.ssh_name.empty()) {
    throw ConfigError("{}: instance {} runs, but has no address", path, host.name);
  }
  return host;
}

}  // namespace

std::vector<Host> instances_in(const std::string& text, const std::string& place) {
  CloudJson json = parse(text, place);
  std::vector<const CloudJson*> items;
  collect(json, items);
  std::vector<Instance> instances;
  for (std::size_t i = 0; i < items.size(); ++i) {
    instances.push_back(read_one(*items[i], place, i + 1));
  }
  std::map<std::string, int> name_counts;
  for (const Instance& instance : instances) name_counts[instance.name] += instance.running;
  std::vector<Host> hosts;
  for (const Instance& instance : instances) {
    if (instance.running) hosts.push_back(to_host(instance, name_counts, place));
  }
  if (hosts.empty()) {
    ConfigError error("{}: no instance is running", place);
    if (!instances.empty()) error.set_cause(count_states(instances));
    throw error;
  }
  return hosts;
}

std::vector<Host> read_instances(const std::filesystem::path& path) {
  return instances_in(read_file(path), path.string());
}

std::string output_of_command(const std::string& command, std::chrono::seconds limit) {
  constexpr std::size_t kMostPrinted = 64 << 20, kMostSaid = 2000;
  const Descriptor input = memory_file(""), output = memory_file(""), errors = memory_file("");
  const pid_t child =
      start_process({"/bin/sh", "-c", command}, input.get(), output.get(), errors.get());
  int status = 0;
  const auto end = std::chrono::steady_clock::now() + limit;
  bool ended = false;
  while (!ended && std::chrono::steady_clock::now() < end) {
    ended = ::waitpid(child, &status, WNOHANG) == child;
    if (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (!ended) {
    ::kill(-child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    throw MachineError("`{}` did not end within {} s", command, limit.count());
  }
  if (status == 0) return text_of_memory_file(output.get(), kMostPrinted);
  MachineError error("`{}` {}", command,
                     WIFEXITED(status) ? fmt::format("exited with {}", WEXITSTATUS(status))
                                       : fmt::format("was ended by signal {}", WTERMSIG(status)));
  const std::string said(trim(text_of_memory_file(errors.get(), kMostSaid)));
  if (!said.empty()) error.set_cause(said.substr(said.rfind('\n') + 1));
  throw error;
}

}  // namespace lockstep
