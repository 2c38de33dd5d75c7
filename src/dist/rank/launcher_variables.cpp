#include "dist/rank/launcher_variables.h"

#include <charconv>
#include <utility>

#include "base/error.h"

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

constexpr int kMostRanks = 1 << 20;

// Guesses for ranks started by hand with RANK and WORLD_SIZE only: all are on this host if the
// master is, else only this one.
void guess_local(const GetVariable& get, SeenLauncher& seen) {
  bool all_here = is_loopback(get("MASTER_ADDR").value_or(""));
  seen.local_rank = all_here ? seen.rank : 0;
  seen.local_size = all_here ? seen.size : 1;
}

void read_local(const GetVariable& get, const Names& names, SeenLauncher& seen) {
  std::optional<LauncherVariable> local_rank = find_variable(get, names.local_rank);
  std::optional<LauncherVariable> local_size = find_variable(get, names.local_size);
  if (!local_rank && !local_size && (seen.size == 1 || seen.launcher == "torchrun")) {
    guess_local(get, seen);
  } else if (!local_rank || !local_size) {
    seen.missing = local_rank ? names.local_size[0] : names.local_rank[0];
  } else {
    seen.local_size = number_of(*local_size, 1, seen.size);
    seen.local_rank = number_of(*local_rank, 0, seen.local_size - 1);
  }
}

// Returns nothing when the family is absent; `missing` is set when only a part of it is there.
std::optional<SeenLauncher> read_plain(const GetVariable& get, const Names& names) {
  std::optional<LauncherVariable> rank = find_variable(get, names.rank);
  std::optional<LauncherVariable> size = find_variable(get, names.size);
  if (!rank && !size) return std::nullopt;
  SeenLauncher seen{
      .launcher = names.launcher, .rank_name = names.rank[0], .size_name = names.size[0]};
  if (!rank || !size) {
    seen.missing = rank ? names.size[0] : names.rank[0];
    return seen;
  }
  seen.size_name = size->name;
  seen.size = number_of(*size, 1, kMostRanks);
  seen.rank = number_of(*rank, 0, seen.size - 1);
  read_local(get, names, seen);
  if (std::optional<LauncherVariable> id = find_variable(get, names.run_id))
    seen.run_id = id->value;
  if (std::optional<LauncherVariable> attempt = find_variable(get, names.attempt)) {
    seen.attempt = number_of(*attempt, 0, kMostRanks);
  }
  return seen;
}

// Only a task that srun started has a step's variables. Inside sbatch or salloc
// SLURM_PROCID and SLURM_NTASKS exist as well, in one process: using them would make it
// wait for ranks that never come. Where a task of one job submitted another, the batch script even
// has that task's variables of a step; srun gives its own tasks two equal numbers.
std::optional<SeenLauncher> read_slurm(const GetVariable& get) {
  std::optional<LauncherVariable> rank = find_variable(get, {"SLURM_PROCID"});
  if (!rank) return std::nullopt;
  SeenLauncher seen{
      .launcher = "Slurm", .rank_name = rank->name, .size_name = "SLURM_STEP_NUM_TASKS"};
  std::optional<LauncherVariable> size = find_variable(get, {"SLURM_STEP_NUM_TASKS"});
  std::optional<LauncherVariable> tasks = find_variable(get, {"SLURM_NTASKS"});
  if (!size || (tasks && tasks->value != size->value)) {
    std::string job = get("SLURM_JOB_NAME").value_or("");
    if (!tasks || job == "bash" || job == "interactive") return std::nullopt;
    if (number_of(*tasks, 1, kMostRanks) == 1) return std::nullopt;
    seen.missing = "SLURM_STEP_NUM_TASKS";
    seen.why_missing =
        !size ? "SLURM_STEP_NUM_TASKS is not set: this is the batch script itself"
              : fmt::format(
                    "SLURM_STEP_NUM_TASKS={} is of the job that submitted this one, whose "
                    "SLURM_NTASKS={}: this is the batch script itself",
                    size->value, tasks->value);
    return seen;
  }
  seen.size = number_of(*size, 1, kMostRanks);
  seen.rank = number_of(*rank, 0, seen.size - 1);
  seen.run_id = get("SLURM_JOB_ID").value_or("") + "." + get("SLURM_STEP_ID").value_or("");
  if (seen.size == 1) return seen;
  std::optional<LauncherVariable> local_rank = find_variable(get, {"SLURM_LOCALID"});
  std::optional<LauncherVariable> per_node =
      find_variable(get, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  if (!local_rank || !per_node) {
    seen.missing = local_rank ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_LOCALID";
    return seen;
  }
  std::vector<int> hosts = expand_slurm_tasks(per_node->value, per_node->name);
  std::optional<LauncherVariable> node = find_variable(get, {"SLURM_NODEID"});
  int here = node ? number_of(*node, 0, static_cast<int>(hosts.size()) - 1) : 0;
  seen.local_size = hosts[here];
  seen.local_rank = number_of(*local_rank, 0, seen.local_size - 1);
  return seen;
}

}  // namespace

std::optional<LauncherVariable> find_variable(const GetVariable& get,
                                              const std::vector<const char*>& names) {
  for (const char* name : names) {
    std::optional<std::string> value = get(name);
    if (value && !value->empty()) return LauncherVariable{name, *value};
  }
  return std::nullopt;
}

int number_of(const LauncherVariable& variable, int least, int most) {
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

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.rfind("127.", 0) == 0;
}

std::vector<SeenLauncher> read_launchers(const GetVariable& get) {
  std::vector<SeenLauncher> out;
  auto add = [&](std::optional<SeenLauncher> seen) {
    if (seen) out.push_back(std::move(*seen));
  };
  for (const Names& names : plain_families()) add(read_plain(get, names));
  add(read_slurm(get));
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
