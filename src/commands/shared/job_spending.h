// What a detached job has cost, as the machine that asks its hosts can tell.
#pragma once

#include <optional>

#include "launch/jobs/find_job.h"

namespace lockstep {

// Of all launchers of the job until now, or until it ended, or until a host last heard of it; by
// the prices it was started with. Nothing without prices.
std::optional<double> spent_on_job(const FoundJob& job);

// What the job's launcher was started with; empty: the option was not given.
std::string option_of_job(const JobRecord& record, const std::string& name);
// Gives it another value, or the option.
void set_option_of_job(JobRecord& record, const std::string& name, const std::string& value);

}  // namespace lockstep
