// How fast the link of a run's hosts is, as far as anybody knows. Nothing is assumed: clouds limit
// machines to what no network card tells (base/link_speed.h).
#pragma once

#include <string>

#include "report/answers/answers.h"

namespace lockstep {

struct KnownLink {
  double bytes_per_second = 0;  // each way; 0: not known
  std::string source;           // "as the interfaces say"
  bool known() const { return bytes_per_second > 0; }
};

// Of several sources the first one that knows: the reader (--bandwidth), links that `lockstep
// doctor` measured (--doctor), the interfaces, the plan in the run folder, whose network was
// measured or given.
KnownLink known_link(const Run& run, const ReportOptions& options);
// The same for one host, whose interface says `told`; 0: nothing.
KnownLink known_link(const Run& run, const ReportOptions& options, double told);

// Says in `out` what the link is and who says so, or that it is not known and how to find out.
void add_known_link(const KnownLink& link, Answer& out);

// Returns the speed of the slowest link in the JSON of `lockstep doctor`, in bytes per second.
// Throws DataError when the file is none or no link was measured.
double doctor_link_speed(const fs::path& file);

}  // namespace lockstep
