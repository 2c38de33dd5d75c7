// The record of a job on its host, the note of it here, and the listing of a run to fetch.
#include "launch/jobs/job_record.h"

#include "fuzz.h"
#include "launch/fetch/run_listing.h"

FUZZ(bytes) {
  const std::string text(bytes);
  lockstep::try_one([&] { return lockstep::job_record_of(text, "job.json"); });
  lockstep::try_one([&] { return lockstep::known_job_of(text, "known.json"); });
  lockstep::try_one([&] { return lockstep::read_run_listing(bytes); });
}
