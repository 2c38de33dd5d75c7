#include "dist/rank/launch_environment.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

// The variables of a launcher that gives rank, size, local rank and local size as plain numbers.
// Alternatives are tried in order (Open MPI 5 has two names for the sizes).
struct Names {
  const char* launcher;
  std::vector<const char*> rank, size, local_rank, local_size, run_id, attempt;
};

const std::vector<Names>& plain_families() {
  static const std::vector<Names> families = {
      {"lockstep",
       {"LOCKSTEP_RANK"},
       {"LOCKSTEP_SIZE"},
       {"LOCKSTEP_LOCAL_RANK"},
       {"LOCKSTEP_LOCAL_SIZE"},
       {"LOCKSTEP_RUN_ID"},
       {"LOCKSTEP_ATTEMPT"}},
      {"Open MPI",
       {"OMPI_COMM_WORLD_RANK"},
       {"OMPI_COMM_WORLD_SIZE", "OMPI_WORLD_SIZE"},
       {"OMPI_COMM_WORLD_LOCAL_RANK"},  // never ..._NODE_RANK: that counts over all jobs of a host
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_WORLD_LOCAL_SIZE"},
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
       {}},
      {"MVAPICH2",
       {"MV2_COMM_WORLD_RANK"},
       {"MV2_COMM_WORLD_SIZE"},
       {"MV2_COMM_WORLD_LOCAL_RANK"},
       {"MV2_COMM_WORLD_LOCAL_SIZE"},
       {"MPISPAWN_ID"},
       {}},
      {"MPICH", {"PMI_RANK"}, {"PMI_SIZE"}, {"MPI_LOCALRANKID"}, {"MPI_LOCALNRANKS"}, {}, {}},
      {"torchrun",
       {"RANK"},
       {"WORLD_SIZE"},
       {"LOCAL_RANK"},
       {"LOCAL_WORLD_SIZE"},
       {"TORCHELASTIC_RUN_ID"},
       {"TORCHELASTIC_RESTART_COUNT"}},
      {"horovodrun",
       {"HOROVOD_RANK"},
       {"HOROVOD_SIZE"},
       {"HOROVOD_LOCAL_RANK"},
       {"HOROVOD_LOCAL_SIZE"},
       {},
       {}},
  };
  return families;
}

struct Variable {
  std::string name, value;
};

// What one family's variables say. A complete family has all four numbers.
struct Seen {
  std::string launcher, rank_name, size_name, missing = "", why_missing = "", run_id = "";
  int rank = 0, size = 1, local_rank = 0, local_size = 1, attempt = 0;
  bool complete() const { return missing.empty(); }
};

std::optional<Variable> find(const GetVariable& get, const std::vector<const char*>& names) {
  for (const char* name : names) {
    std::optional<std::string> value = get(name);
    if (value && !value->empty()) return Variable{name, *value};
  }
  return std::nullopt;
}

// The text itself is not shown: it is a secret.
Token secret_of(const Variable& variable) {
  try {
    return token_of_hex(variable.value);
  } catch (const MachineError&) {
    ConfigError error("{}: expected 32 hexadecimal digits", variable.name);
    error.set_advice("export LOCKSTEP_SECRET=$(openssl rand -hex 16) before the ranks are started");
    throw error;
  }
}

int to_number(const Variable& variable, int least, int most) {
  int value = 0;
  const std::string& text = variable.value;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) {
    throw ConfigError("{}={}: expected a whole number", variable.name, text);
  }
  if (value < least || value > most) {
    throw ConfigError("{}={}: expected a number from {} to {}", variable.name, text, least, most);
  }
  return value;
}

constexpr int kMostRanks = 1 << 20;

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.rfind("127.", 0) == 0;
}

// Guesses for ranks started by hand with RANK and WORLD_SIZE only: all are on this host if the
// master is, else only this one.
void guess_local(const GetVariable& get, Seen& seen) {
  bool all_here = is_loopback(get("MASTER_ADDR").value_or(""));
  seen.local_rank = all_here ? seen.rank : 0;
  seen.local_size = all_here ? seen.size : 1;
}

void read_local(const GetVariable& get, const Names& names, Seen& seen) {
  std::optional<Variable> local_rank = find(get, names.local_rank);
  std::optional<Variable> local_size = find(get, names.local_size);
  if (!local_rank && !local_size && (seen.size == 1 || seen.launcher == "torchrun")) {
    guess_local(get, seen);
  } else if (!local_rank || !local_size) {
    seen.missing = local_rank ? names.local_size[0] : names.local_rank[0];
  } else {
    seen.local_size = to_number(*local_size, 1, seen.size);
    seen.local_rank = to_number(*local_rank, 0, seen.local_size - 1);
  }
}

// Returns nothing when the family is absent; `missing` is set when only a part of it is there.
std::optional<Seen> read_plain(const GetVariable& get, const Names& names) {
  std::optional<Variable> rank = find(get, names.rank);
  std::optional<Variable> size = find(get, names.size);
  if (!rank && !size) return std::nullopt;
  Seen seen{.launcher = names.launcher, .rank_name = names.rank[0], .size_name = names.size[0]};
  if (!rank || !size) {
    seen.missing = rank ? names.size[0] : names.rank[0];
    return seen;
  }
  seen.size_name = size->name;
  seen.size = to_number(*size, 1, kMostRanks);
  seen.rank = to_number(*rank, 0, seen.size - 1);
  read_local(get, names, seen);
  if (std::optional<Variable> id = find(get, names.run_id)) seen.run_id = id->value;
  if (std::optional<Variable> attempt = find(get, names.attempt)) {
    seen.attempt = to_number(*attempt, 0, kMostRanks);
  }
  return seen;
}

// Only a task that srun started has a step's variables. Inside sbatch or salloc
// SLURM_PROCID and SLURM_NTASKS exist as well, in one process: using them would make it
// wait for ranks that never come. Where a task of one job submitted another, the batch script even
// has that task's variables of a step; srun gives its own tasks two equal numbers.
std::optional<Seen> read_slurm(const GetVariable& get) {
  std::optional<Variable> rank = find(get, {"SLURM_PROCID"});
  if (!rank) return std::nullopt;
  Seen seen{.launcher = "Slurm", .rank_name = rank->name, .size_name = "SLURM_STEP_NUM_TASKS"};
  std::optional<Variable> size = find(get, {"SLURM_STEP_NUM_TASKS"});
  std::optional<Variable> tasks = find(get, {"SLURM_NTASKS"});
  if (!size || (tasks && tasks->value != size->value)) {
    std::string job = get("SLURM_JOB_NAME").value_or("");
    if (!tasks || job == "bash" || job == "interactive") return std::nullopt;
    if (to_number(*tasks, 1, kMostRanks) == 1) return std::nullopt;
    seen.missing = "SLURM_STEP_NUM_TASKS";
    seen.why_missing =
        !size ? "SLURM_STEP_NUM_TASKS is not set: this is the batch script itself"
              : fmt::format(
                    "SLURM_STEP_NUM_TASKS={} is of the job that submitted this one, whose "
                    "SLURM_NTASKS={}: this is the batch script itself",
                    size->value, tasks->value);
    return seen;
  }
  seen.size = to_number(*size, 1, kMostRanks);
  seen.rank = to_number(*rank, 0, seen.size - 1);
  seen.run_id = get("SLURM_JOB_ID").value_or("") + "." + get("SLURM_STEP_ID").value_or("");
  if (seen.size == 1) return seen;
  std::optional<Variable> local_rank = find(get, {"SLURM_LOCALID"});
  std::optional<Variable> per_node =
      find(get, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  if (!local_rank || !per_node) {
    seen.missing = local_rank ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_LOCALID";
    return seen;
  }
  std::vector<int> hosts = expand_slurm_tasks(per_node->value, per_node->name);
  std::optional<Variable> node = find(get, {"SLURM_NODEID"});
  int here = node ? to_number(*node, 0, static_cast<int>(hosts.size()) - 1) : 0;
  seen.local_size = hosts[here];
  seen.local_rank = to_number(*local_rank, 0, seen.local_size - 1);
  return seen;
}

// Slurm may have started one daemon (or torchrun) per host, which then started the ranks: that is
// no contradiction.
bool agree(const Seen& a, const Seen& b) {
  if (a.rank == b.rank && a.size == b.size) return true;
  return b.launcher == "Slurm" && b.local_size == 1 && a.size >= b.size;
}

[[noreturn]] void refuse_incomplete(const Seen& seen) {
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
    std::optional<Variable> ignored = find(get, {name});
    if (!ignored || find(get, {"PRTE_MCA_prte_default_hostfile"})) continue;
    ConfigError error("{}={}: this Open MPI (5 or newer) does not read it", name, ignored->value);
    error.set_advice("mpirun --hostfile FILE, or PRTE_MCA_prte_default_hostfile=FILE");
    throw error;
  }
}

// Returns the family that takes precedence, or nothing for a process that nobody launched.
std::optional<Seen> choose_family(const GetVariable& get) {
  std::vector<Seen> complete, incomplete;
  auto sort_in = [&](std::optional<Seen> seen) {
    if (seen) (seen->complete() ? complete : incomplete).push_back(std::move(*seen));
  };
  for (const Names& names : plain_families()) sort_in(read_plain(get, names));
  sort_in(read_slurm(get));
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
  const Seen& first = complete.front();
  for (const Seen& other : complete) {
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

[[noreturn]] void refuse_without_address(const Seen& seen) {
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
std::string address_of_mpirun(const GetVariable& get, const Seen& seen) {
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

std::string master_address(const GetVariable& get, const Seen& seen) {
  bool own = seen.launcher == "lockstep";
  std::optional<Variable> given =
      own ? find(get, {"LOCKSTEP_MASTER_ADDRESS"}) : find(get, {"MASTER_ADDR"});
  if (given) return given->value;
  if (seen.local_size == seen.size) return "127.0.0.1";
  if (seen.launcher == "Slurm") {
    std::optional<Variable> hosts = find(get, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"});
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
bool left_to_pmi(const GetVariable& get, const Seen& seen) {
  return seen.launcher == "MPICH" && find(get, {"PMI_FD"}) &&
         !find(get, {"MASTER_ADDR", "MASTER_PORT"});
}

int master_port(const GetVariable& get, const Seen& seen) {
  bool own = seen.launcher == "lockstep";
  std::optional<Variable> given =
      own ? find(get, {"LOCKSTEP_MASTER_PORT"}) : find(get, {"MASTER_PORT"});
  if (given) return to_number(*given, 1, 65535);
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
  std::optional<Seen> seen = choose_family(get);
  if (!seen) return out;
  out.rank = seen->rank;
  out.size = seen->size;
  out.local_rank = seen->local_rank;
  out.local_size = seen->local_size;
  out.launcher = seen->launcher;
  out.run_id = seen->run_id;
  out.attempt = seen->attempt;
  if (auto secret = find(get, {"LOCKSTEP_SECRET"})) out.secret = secret_of(*secret);
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
    if (auto socket = find(get, {"LOCKSTEP_STORE_FD"})) {
      out.store_descriptor = to_number(*socket, 0, 1 << 20);
    }
  }
  out.store_is_served =
      seen->launcher == "torchrun" && is_true(get("TORCHELASTIC_USE_AGENT_STORE"));
  return out;
}

const std::vector<std::string>& clear_list() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out = {"LOCKSTEP_MASTER_ADDRESS",
                                    "LOCKSTEP_MASTER_PORT",
                                    "LOCKSTEP_STORE_FD",
                                    "LOCKSTEP_SECRET",
                                    "LOCKSTEP_REPORT_FD",
                                    "LOCKSTEP_ADDRESS",
                                    "LOCKSTEP_HOST",
                                    "MASTER_ADDR",
                                    "MASTER_PORT",
                                    "GROUP_RANK",
                                    "GROUP_WORLD_SIZE",
                                    "ROLE_RANK",
                                    "ROLE_WORLD_SIZE",
                                    "ROLE_NAME",
                                    "TORCHELASTIC_MAX_RESTARTS",
                                    "TORCHELASTIC_USE_AGENT_STORE",
                                    "OMPI_COMM_WORLD_NODE_RANK",
                                    "OMPI_MCA_orte_hnp_uri",
                                    "PMIX_RANK",
                                    "PMIX_SERVER_URI41",
                                    "PRTE_LAUNCHED",
                                    "PMI_FD",
                                    "PMI_PORT",
                                    "PMI_ID",
                                    "PMI_HOSTNAME",
                                    "SLURM_PROCID",
                                    "SLURM_NTASKS",
                                    "SLURM_NPROCS",
                                    "SLURM_LOCALID",
                                    "SLURM_NODEID",
                                    "SLURM_STEP_NUM_TASKS",
                                    "SLURM_STEP_TASKS_PER_NODE",
                                    "SLURM_TASKS_PER_NODE",
                                    "SLURM_STEP_NODELIST"};
    for (const Names& family : plain_families()) {
      for (const auto* part : {&family.rank, &family.size, &family.local_rank, &family.local_size,
                               &family.run_id, &family.attempt}) {
        out.insert(out.end(), part->begin(), part->end());
      }
    }
    return out;
  }();
  return names;
}

}  // namespace lockstep
