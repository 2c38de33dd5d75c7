// Collects findings; the checks of hosts and of links derive from it.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "launch/doctor/doctor.h"

namespace lockstep::detail {

class Findings {
 public:
  Findings(const DoctorReport& report, const DoctorNeeds& needs) : report_(report), needs_(needs) {
    for (const HostReport& host : report.hosts) {
      if (!host.failure) answering_.push_back(&host);
    }
  }

  std::vector<DoctorFinding> take() { return std::move(findings_); }

 protected:
  void add(DoctorFinding finding) {
    if (finding.verdict != Judgement::kOk) troubled_.push_back(finding.check);
    findings_.push_back(std::move(finding));
  }
  // Adds what is said when a check found nothing wrong.
  void fine(const std::string& check, const std::string& seen) {
    if (std::find(troubled_.begin(), troubled_.end(), check) != troubled_.end()) return;
    findings_.push_back({Judgement::kOk, check, "", seen, "", ""});
  }

  const DoctorReport& report_;
  const DoctorNeeds& needs_;
  std::vector<const HostReport*> answering_;

 private:
  std::vector<DoctorFinding> findings_;
  std::vector<std::string> troubled_;  // checks with a warning or failure
};

// Judges addresses, ports, links and TCP settings. REQUIRES two answering hosts.
std::vector<DoctorFinding> judge_links(const DoctorReport& report, const DoctorNeeds& needs);

}  // namespace lockstep::detail
