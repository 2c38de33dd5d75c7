#include "dist/rank/launch_environment.h"

#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"
#include "dist/rank/launcher_variables.h"

namespace lockstep {

namespace {

// The text itself is not shown: it is a secret.
Token secret_of(const LauncherVariable& variable) {
  try {
    return token_of_hex(variable.value);
  } catch (const MachineError&) {
    ConfigError error("{}: expected 32 hexadecimal digits", variable.name);
    error.set_advice("export LOCKSTEP_SECRET=$(openssl rand -hex 16) before the ranks are started");
    throw error;
  }
}

// Slurm may have started one daemon (or torchrun) per host, which then started the ranks: that is
// no contradiction.
bool agree(const SeenLauncher& a, const SeenLauncher& b) {
  if (a.rank == b.rank && a.size == b.size) return true;
  return b.launcher == "Slurm" && b.local_size == 1 && a.size >= b.size;
}

[[noreturn]] void refuse_incomplete(const SeenLauncher& seen) {
  if (seen.launcher == "Slurm") {
    ConfigError error("SLURM_NTASKS asks for several ranks, but srun did not start this process");
    error.set_cause(seen.why_missing);
    error.set_advice("srun lockstep train ..., or lockstep launch -n N -- train ... on one host");
    throw error;
  }
  ConfigError error("the variables of {} are incomplete: {} is not set", seen.launcher,
                    seen.missing);
  error.set_advice(fmt::format("set it, or unset {} and {}", seen.rank_name, seen.size_name));
  throw error;
}

// Open MPI 5 reads PRTE_MCA_* and silently ignores what versions 3 and 4 read: a list of hosts
// given by the old name leaves all ranks on one host.
void refuse_ignored_hosts(const GetVariable& get) {
  if (!get("PRTE_LAUNCHED")) return;
  for (const char* name : {"OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_default_dash_host"}) {
    std::optional<LauncherVariable> ignored = find_variable(get, {name});
    if (!ignored || find_variable(get, {"PRTE_MCA_prte_default_hostfile"})) continue;
    ConfigError error("{}={}: this Open MPI (5 or newer) does not read it", name, ignored->value);
    error.set_advice("mpirun --hostfile FILE, or PRTE_MCA_prte_default_hostfile=FILE");
    throw error;
  }
}

// Returns the family that takes precedence, or nothing for a process that nobody launched.
std::optional<SeenLauncher> choose_family(const GetVariable& get) {
  std::vector<SeenLauncher> complete, incomplete;
  for (SeenLauncher& seen : read_launchers(get)) {
    (seen.complete() ? complete : incomplete).push_back(std::move(seen));
  }
  if (complete.empty()) {
    if (!incomplete.empty()) refuse_incomplete(incomplete.front());
    if (get("PMIX_RANK")) {
      ConfigError error("PMIX_RANK is set, but no variable says how many ranks there are");
      error.set_advice(
          "mpirun -x WORLD_SIZE=N -x RANK=..., or lockstep launch; see docs/launch.md");
      throw error;
    }
    return std::nullopt;
  }
  refuse_ignored_hosts(get);
  const SeenLauncher& first = complete.front();
  for (const SeenLauncher& other : complete) {
    if (agree(first, other)) continue;
    ConfigError error("{} and {} disagree: {}={} {}={}, but {}={} {}={}", first.launcher,
                      other.launcher, first.rank_name, first.rank, first.size_name, first.size,
                      other.rank_name, other.rank, other.size_name, other.size);
    error.set_advice(
        fmt::format("unset the variables of the one that did not start the ranks: "
                    "env -u {} -u {} ...",
                    other.rank_name, other.size_name));
    throw error;
  }
  return first;
}

int port_from(const std::string& run_id) {
  constexpr int kTorchDefaultPort = 29500, kFirstPort = 15000, kPorts = 15000;
  if (run_id.empty()) return kTorchDefaultPort;
  uint32_t hash = 2166136261u;  // FNV-1a: the same on every host, which std::hash is not
  for (unsigned char c : run_id) hash = (hash ^ c) * 16777619u;
  return kFirstPort + static_cast<int>(hash % kPorts);
}

[[noreturn]] void refuse_without_address(const SeenLauncher& seen) {
  ConfigError error("{} started {} ranks on several hosts, but not where rank 0 is", seen.launcher,
                    seen.size);
  error.set_cause("MASTER_ADDR is not set");
  std::string advice = "MASTER_ADDR=ADDRESS MASTER_PORT=29500 in the environment of every rank";
  if (seen.launcher == "Open MPI") {
    advice = "mpirun -x MASTER_ADDR=ADDRESS ... (the private address of rank 0's host)";
  } else if (seen.launcher != "torchrun") {
    advice = "mpiexec -genv MASTER_ADDR ADDRESS ... (the private address of rank 0's host)";
  }
  error.set_advice(advice);
  throw error;
}

// Open MPI 4 tells every rank where mpirun runs: "JOB.0;tcp://10.0.0.1,192.0.2.1:4242;tcp6://...".
// That is rank 0's host when rank 0's own daemon is mpirun; otherwise rank 0 stops the job.
// docker0's usual network, which every machine has for itself, is skipped. Returns nothing where
// there is no address.
std::string address_of_mpirun(const GetVariable& get, const SeenLauncher& seen) {
  constexpr std::string_view kStart = ";tcp://";
  std::string uri = get("OMPI_MCA_orte_hnp_uri").value_or("");
  std::size_t start = uri.find(kStart);
  bool elsewhere = seen.rank == 0 && get("OMPI_MCA_orte_local_daemon_uri").value_or("") != uri;
  if (start == std::string::npos || elsewhere) return "";
  start += kStart.size();
  std::string addresses = uri.substr(start, uri.find(':', start) - start);
  for (const std::string& address : split(addresses, ',')) {
    if (!is_loopback(address) && address.rfind("172.17.", 0) != 0) return address;
  }
  return "";
}

std::string master_address(const GetVariable& get, const SeenLauncher& seen) {
  bool own = seen.launcher == "lockstep";
  std::optional<LauncherVariable> given =
      own ? find_variable(get, {"LOCKSTEP_MASTER_ADDRESS"}) : find_variable(get, {"MASTER_ADDR"});
  if (given) return given->value;
  if (seen.local_size == seen.size) return "127.0.0.1";
  if (seen.launcher == "Slurm") {
    std::optional<LauncherVariable> hosts =
        find_variable(get, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"});
    if (hosts) return expand_slurm_hosts(hosts->value, hosts->name).front();
  }
  if (seen.launcher == "Open MPI") {
    std::string address = address_of_mpirun(get, seen);
    if (!address.empty()) return address;
  }
  refuse_without_address(seen);
}

// Hydra gives no address but can pass texts between ranks: learn_master
// (pmi.h) asks for the address.
bool left_to_pmi(const GetVariable& get, const SeenLauncher& seen) {
  return seen.launcher == "MPICH" && find_variable(get, {"PMI_FD"}) &&
         !find_variable(get, {"MASTER_ADDR", "MASTER_PORT"});
}

int master_port(const GetVariable& get, const SeenLauncher& seen) {
  bool own = seen.launcher == "lockstep";
  std::optional<LauncherVariable> given =
      own ? find_variable(get, {"LOCKSTEP_MASTER_PORT"}) : find_variable(get, {"MASTER_PORT"});
  if (given) return number_of(*given, 1, 65535);
  return port_from(seen.run_id);
}

bool is_true(const std::optional<std::string>& value) {
  return value && (*value == "1" || *value == "True" || *value == "true");
}

}  // namespace

std::optional<std::string> environment_variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value) return std::nullopt;
  return std::string(value);
}

LaunchEnvironment detect_launch_environment(const GetVariable& get) {
  LaunchEnvironment out;
  out.master_address = "127.0.0.1";
  std::optional<SeenLauncher> seen = choose_family(get);
  if (!seen) return out;
  out.rank = seen->rank;
  out.size = seen->size;
  out.local_rank = seen->local_rank;
  out.local_size = seen->local_size;
  out.launcher = seen->launcher;
  out.run_id = seen->run_id;
  out.attempt = seen->attempt;
  if (auto secret = find_variable(get, {"LOCKSTEP_SECRET"})) out.secret = secret_of(*secret);
  if (seen->launcher == "lockstep") {
    out.address = get("LOCKSTEP_ADDRESS").value_or("");
    out.host = get("LOCKSTEP_HOST").value_or("");
  }
  if (seen->size == 1) return out;
  if (left_to_pmi(get, *seen)) {
    out.master_address.clear();
    return out;
  }
  out.master_address = master_address(get, *seen);
  out.master_port = master_port(get, *seen);
  if (seen->launcher == "lockstep" && seen->rank == 0) {
    if (auto socket = find_variable(get, {"LOCKSTEP_STORE_FD"})) {
      out.store_descriptor = number_of(*socket, 0, 1 << 20);
    }
  }
  out.store_is_served =
      seen->launcher == "torchrun" && is_true(get("TORCHELASTIC_USE_AGENT_STORE"));
  return out;
}

}  // namespace lockstep
