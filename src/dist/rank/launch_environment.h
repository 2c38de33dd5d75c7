// Reads from the launcher's variables which rank this process is, and where the ranks rendezvous.
// Knows lockstep's own launcher, Open MPI 4 and 5, MPICH and Intel MPI (Hydra), MVAPICH2, torchrun,
// horovodrun and Slurm; without any of them the process is the only rank.
// docs/launch.md#under-another-launcher has the table.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dist/rank/token.h"

namespace lockstep {

struct LaunchEnvironment {
  int rank = 0, size = 1;              // among all processes; 0 <= rank < size
  int local_rank = 0, local_size = 1;  // among those on this host
  std::string master_address;          // of rank 0's store; empty: learn_master (pmi.h) asks for it
  int master_port = 0;                 // 0 only when size is 1: nobody else needs it
  std::string address;                 // of this host towards the others; empty: the route decides
  std::string host;                    // its name in messages; empty: the launcher gave none
  std::string launcher = "none";       // name of the family, for messages: "Open MPI"
  std::string run_id;                  // equal in all ranks of one job; may be empty
  int attempt = 0;                     // restarts before this one
  std::optional<Token> secret;         // of this attempt, by which its ranks know each other
  int store_descriptor = -1;           // a listening socket for the store (rank 0 only); -1: none
  bool store_is_served = false;        // torchrun's agent serves the store: rank 0 is a client too

  Token shared_secret() const { return secret.value_or(Token{}); }  // zeros: there is none
};

// Returns the value of a variable; an absent one is normal.
using GetVariable = std::function<std::optional<std::string>(const char*)>;

// Looks the variable up in the process's own environment.
std::optional<std::string> environment_variable(const char* name);

// Reads the launch environment. Throws ConfigError, naming the variables, when a value is no number
// or out of range, when a family is incomplete, when two families disagree on rank or size, when
// several hosts have no master address (Open MPI 4 says where mpirun runs, Hydra is asked later),
// and for a list of hosts that Open MPI 5 does not read.
//
// Precedence: lockstep, Open MPI, MVAPICH2, Hydra, torchrun, horovodrun, Slurm. Slurm's
// numbers may differ from those of a launcher inside it if Slurm started one task per host (a
// daemon of that launcher).
//
// If MASTER_PORT is not given, it is derived from what all ranks of a job share: 15000 + h,
// where h < 15000 is the 32-bit FNV-1a hash of run_id modulo 15000 (below Linux' ephemeral
// ports). Hydra shares nothing unique; there the port is 29500. When two jobs get the same port,
// the second one cannot listen on it and ends (MachineError).
LaunchEnvironment detect_launch_environment(const GetVariable& get = environment_variable);

// Returns the names of all variables by which a process may learn a rank. A program that starts
// ranks of its own removes them first, because a nested launch inherits its parent's.
const std::vector<std::string>& clear_list();

// "gnode[10,20-21],login" -> gnode10 gnode20 gnode21 login; leading zeros are kept.
// Throws ConfigError naming `variable` for unbalanced brackets and bad ranges.
std::vector<std::string> expand_slurm_hosts(const std::string& list, const std::string& variable);

// "2(x3),1" -> 2 2 2 1: the number of tasks on each host. Throws ConfigError naming `variable`.
std::vector<int> expand_slurm_tasks(const std::string& list, const std::string& variable);

}  // namespace lockstep
