#include "dist/collectives/job_checks.h"

#include <set>

#include "base/error.h"
#include "dist/collectives/world.h"
#include "dist/rank/machine_key.h"

namespace lockstep {

void require_machines(World& world, int expected) {
  if (expected == 0) return;
  std::string mine = machine_key();
  if (mine.empty()) mine = fmt::format("rank {} alone", world.rank());
  std::set<std::string> keys{mine};
  if (world.size() > 1) {
    for (const std::string& key : world.all_gather_strings(mine)) keys.insert(key);
  }
  auto seen = static_cast<int>(keys.size());
  if (seen == expected) return;
  ConfigError error("the ranks run on {} machine{}, expected were {}", seen, seen == 1 ? "" : "s",
                    expected);
  error.set_advice(
      "see which hosts the launcher used: mpirun --display-map, srun -l hostname; Open MPI 5 "
      "passes over OMPI_MCA_orte_* and reads PRTE_MCA_*");
  // Until all ranks know: one that lost a peer first would end with another code.
  try {
    world.barrier();
  } catch (const Error&) {  // some ended already
  }
  throw error;
}

std::string sign_of_lone_rank(const GetVariable& get) {
  for (const char* name : {"PMIX_NAMESPACE", "PMI_FD", "PMI_PORT", "HYDI_CONTROL_FD",
                           "OMPI_MCA_orte_hnp_uri", "PRTE_LAUNCHED", "SLURM_STEP_ID"}) {
    if (auto value = get(name)) return fmt::format("{}={}", name, *value);
  }
  return "";
}

}  // namespace lockstep
